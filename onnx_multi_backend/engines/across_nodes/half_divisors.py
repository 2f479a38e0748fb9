# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a float16 divisor that is computed of constants, as by a Cast.

It multiplies by the reciprocal, in float16: inf of a divisor below 1.5e-5. So the quotient is computed in float32. One that is a constant itself is
known to `engines/openvino/quotient_defects.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.reciprocals import inexact_reciprocal
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.tensors import is_whole

_HALF = TensorProto.FLOAT16
_PASS, _CHANGE = "half_divisors", "computed in float32"
_REASON = "OpenVINO would multiply by the reciprocal of the divisor in float16"


def half_divisors(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such quotients are computed in float32; None where there are none."""
    if not contents.has({"Div"}):
        return None
    walked = walked_of(contents)
    found = [list(_found(nodes, walked)) for nodes in walked.views]
    if not any(found) or not Facts(contents.model, contents).may_hold(_HALF):
        return None
    places = [
        {place: True for place in own if _is_half(walked.types.get(graph.node[place].output[0]))}
        for graph, own in zip(walked.graphs, found, strict=True)
    ]
    if not any(places):
        return None
    taken, changes = names_taken(walked.flat), list[Adaptation]()

    def write(node: NodeProto, meant: bool, kept: dict[str, str]) -> Iterator[NodeProto]:
        changes.append(Adaptation(_PASS, f"Div {node.name or node.output[0]!r}", _CHANGE, _REASON))
        for place, read in enumerate(node.input):
            name = unused(f"{read}{CAST}wide", taken)
            yield helper.make_node("Cast", [read], [name], name=name, to=TensorProto.FLOAT)
            node.input[place] = name
        made = node.output[0]
        node.output[0] = unused(f"{made}{CAST}wide", taken)
        yield node
        name = unused(f"{made}{CAST}half", taken)
        yield helper.make_node("Cast", [node.output[0]], [made], name=name, to=_HALF)

    return written(walked.flat, places, write, changes)


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[int]:
    """The places of quotients by what is computed of constants and may be too small or too large."""
    for place, node in enumerate(nodes):
        if node.operator != "Div" or len(node.input) != 2 or node.input[1] not in walked.fixed:
            continue
        maker = walked.makers.get(node.input[1])
        if maker is not None and maker.op_type != "Constant" and not _is_plain(walked.fixed[node.input[1]]):
            yield place


def _is_plain(tensor: TensorProto | None) -> bool:
    """Whether all of a constant's numbers have exact reciprocals in float16."""
    if tensor is None or not tensor.data_type or not is_whole(tensor) or tensor.data_type == TensorProto.STRING:
        return False
    return inexact_reciprocal(_HALF, numpy_helper.to_array(tensor)) is None


def _is_half(kind: TypeProto.Tensor | None) -> bool:
    return kind is not None and kind.elem_type == _HALF
