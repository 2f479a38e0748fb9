# SPDX-License-Identifier: Apache-2.0
"""Where ONNX's evaluator (1.23) does not do what ONNX's documentation says: there it has no vote."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, ValueInfoProto

from onnx_multi_backend.adapt.operators.pools import gaps_under_auto_pad
from onnx_multi_backend.models.graph_walk import all_nodes, subgraphs

_RECURRENT = ("GRU", "LSTM", "RNN")
_OF_ROWS = ("Hardmax", "LogSoftmax", "Softmax")

#: Before it, these took all axes from `axis` on together.
_SINCE_AXIS = 13


def errs(model: ModelProto) -> str:
    """What the evaluator gets wrong of a model; empty where nothing is known."""
    opsets = [
        o.version for o in (*model.opset_import, *(o for f in model.functions for o in f.opset_import)) if not o.domain
    ]
    flattens = min(opsets, default=1) < _SINCE_AXIS
    if any(_may_have_more_channels(node, model) for node in all_nodes(model)):
        return "LRN: the channels beyond as many as there are images are divided by the bias alone"
    return next((f"{n.op_type}: {words}" for n in all_nodes(model) if (words := _of_node(n, flattens=flattens))), "")


def _of_node(node: NodeProto, *, flattens: bool) -> str:
    if flattens and node.op_type in _OF_ROWS and not any(a.name == "axis" and a.i == -1 for a in node.attribute):
        return "the axes behind `axis` are left out, as since opset 13"
    set_to = {a.name for a in node.attribute if a.i or a.f}
    if node.op_type in _RECURRENT:
        if len(node.input) > 4 and node.input[4]:
            return "sequence_lens is ignored"
        if node.op_type != "RNN" and any(a.name == "activations" for a in node.attribute):
            return "activations are ignored"
        return next((f"{name} is ignored" for name in ("clip", "input_forget") if name in set_to), "")
    if node.op_type == "Loop" and any(len(row.type.tensor_type.shape.dim) != 1 for row in _rows(node)):
        return "rows are joined along their first axis, where they should be stacked"
    if node.op_type == "StringNormalizer":
        return "strings without letters are left out"
    if node.op_type == "LpPool" and "ceil_mode" in set_to:
        return "a last window that ends beyond the image counts as a whole one"
    if node.op_type in ("AveragePool", "MaxPool") and max(gaps_under_auto_pad(node), default=0) > 0:
        return "elements before the first window are left out where auto_pad has nothing to add"
    return "two axes are taken for the spatial ones, however many there are" if node.op_type == "GlobalMaxPool" else ""


def _may_have_more_channels(node: NodeProto, model: ModelProto) -> bool:
    """Whether a node is an LRN of images that may have more channels than there are images."""
    if node.op_type != "LRN":
        return False
    inputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    sizes = [size.dim_value for size in inputs.get(node.input[0], ())]
    return len(sizes) < 2 or not 0 < sizes[1] <= sizes[0]


def _rows(node: NodeProto) -> list[ValueInfoProto]:
    """What the body of a Loop makes to be collected."""
    return [row for body in subgraphs(node) for row in body.output[len(body.input) - 1 :]]
