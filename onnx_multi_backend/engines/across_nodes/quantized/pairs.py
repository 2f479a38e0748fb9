# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of Q/DQ nodes where its low-precision transformations are switched off.

It computes both at once, in the kernel of what stands before them where it can. What is dequantized from the zero point is 1e-9 or so then, not 0,
and what jumps at 0 jumps wrongly; behind a reduction, a normalization or a Resize of three axes, a constant for each channel is taken for one along
another axis, and read beyond its end. With the larger of a value and itself between the nodes, each is computed by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_NUMBER, flat_for, input_apart, larger, written
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import in_floating_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

#: What passes elements on: ONNX Runtime puts a second pair behind it.
_PASSING = frozenset({"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_PAIR = frozenset({"DequantizeLinear", "QuantizeLinear"})
_READING = _PASSING | {"DequantizeLinear"}
_SUFFIX = f"{CAST}pairs"
_REASON = "OpenVINO would compute both in one kernel, inexactly, or with constants for other channels behind them"


def pairs_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such Q/DQ nodes are computed apart; None where there are none."""
    if not contents.has({"QuantizeLinear"}) or not in_floating_point(contents):
        return None
    flat = flat_for(contents)
    if flat is None or opset_versions(flat).get("", 1) < ANY_NUMBER:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    if not any(found):
        return None
    changes: list[Adaptation] = []
    taken = names_taken(flat)

    def write(node: NodeProto, scales: bool, kept: dict[str, str]) -> Iterator[NodeProto]:
        if (made := input_apart(node, 0, _SUFFIX, taken, kept)) is not None:
            where = f"{node.op_type} {node.name or node.output[0]!r}"
            changes.append(Adaptation("pairs_apart", where, "kept apart from what makes it", _REASON))
            yield made
        yield from _scaled_apart(node, taken) if scales else (node,)

    return written(flat, found, write, changes)


def _scaled_apart(node: NodeProto, taken: set[str]) -> Iterator[NodeProto]:
    """A DequantizeLinear whose product with the scale is kept apart from the difference to the zero point, as one it is rounded otherwise."""
    made, scale = node.output[0], node.input[1]
    one, shifted, apart, scaled = (unused(f"{made}{_SUFFIX}{what}", taken) for what in ("one", "0", "1", "2"))
    yield helper.make_node("Constant", [], [one], name=one, value=helper.make_tensor(one, TensorProto.FLOAT, [], [1.0]))
    node.input[1], node.output[0] = one, shifted
    yield node
    yield larger(shifted, apart, name=apart)
    yield helper.make_node("Mul", [apart, scale], [made], name=scaled)


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, bool]]:
    """The places of what dequantizes quantized values or passes on either; whether it is a DequantizeLinear with a zero point and one scale."""
    made = {name for node in nodes if node.operator in _PAIR for name in node.output}
    for place, node in enumerate(nodes):
        if node.operator not in _READING or node.input[0] not in made:
            continue
        made.update(node.output)
        shifts = node.operator == "DequantizeLinear" and len(node.input) > 2
        yield place, shifts and _is_number(node.input[1], walked)


def _is_number(name: str, walked: Walked) -> bool:
    """Whether a scale is one constant of float32 without axes."""
    tensor = walked.fixed.get(name)
    return tensor is not None and tensor.data_type == TensorProto.FLOAT and not tensor.dims
