# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan whose body passes on what it is given of each step, or computes a state of it, which may be done in its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.graph_walk import canonical

#: Operators that an engine may read as their first operand, and those that it may where they have one.
_PASSING = frozenset({"Dropout", "SequenceAt"})
_OF_ONE = frozenset({"Max", "Mean", "Min", "SequenceConstruct", "Sum"})
#: Operators whose results are in memory of their own. The others may be computed in that of an input, or change nothing and be left out.
_OWN_MEMORY = frozenset(
    """
    ArgMax ArgMin AveragePool Conv ConvTranspose GRU GlobalAveragePool GlobalMaxPool LSTM MatMul MaxPool NonZero OneHot RNN
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Shape Size TopK
    """.split()
)
#: Before the name of what is passed on by a node of its own.
_GIVEN = "slice/"

#: What makes of a value that value in memory of its own; Max of numbers.
_KEPT: Mapping[int, str] = {TensorProto.BOOL: "Or", TensorProto.STRING: "Identity"}


def passes_slices_on(site: Site) -> list[str]:
    """The inputs of the body, of one step each, that such operators make an output of, or whose memory a state may be computed in."""
    if not site.is_("Scan") or site.opset < 9 or GUARDED in site.node.name:
        return []
    body: GraphProto = site.attribute("body")
    states = len(body.input) - site.attribute("num_scan_inputs", 0)
    source = {value.name: value.name for value in body.input[states:]}
    within = {name: {name} for name in source}
    for node in body.node:
        if _passes_on(node) and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
        held = set().union(*(within.get(name, ()) for name in reads(node)))
        if held and not _has_own_memory(node):
            within.update((name, held) for name in node.output)
    own = {value.name for value in body.input}
    rows = {source[v.name] for v in body.output[states:] if v.name in source and v.name not in own}
    return sorted(rows.union(*(within.get(v.name, ()) for v in body.output[:states])))


def _passes_on(node: NodeProto) -> bool:
    if canonical(node.domain) or not node.input:
        return False
    return node.op_type in _PASSING or (node.op_type in _OF_ONE and len(node.input) == 1)


def _has_own_memory(node: NodeProto) -> bool:
    if canonical(node.domain) or node.op_type not in _OWN_MEMORY:
        return False
    return not any(a.name == "noop_with_empty_axes" and a.i for a in node.attribute)


def scan_slices(site: Site) -> Iterator[ModelProto]:
    """Have the larger of a value and itself passed on, or either of two truth values, which has memory of its own; of text, an Identity."""
    if not (slices := passes_slices_on(site)):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    before = []
    for value in graph.input:
        if value.name in slices:
            given = f"{_GIVEN}{value.name}"
            operator = _KEPT.get(value.type.tensor_type.elem_type, "Max")
            read = [given] if operator == "Identity" else [given, given]
            before.append(helper.make_node(operator, read, [value.name]))
            value.name = given
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    body = Body(site, site.opsets)
    count = len(site.node.output)
    made = body("Scan", *site.node.input, outputs=count, body=graph, name=GUARDED, **site.attributes("body"))
    yield body.finish(*made)
