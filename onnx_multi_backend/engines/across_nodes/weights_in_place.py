# SPDX-License-Identifier: Apache-2.0
"""Around arithmetic that OpenVINO (2025.4, 2026.4) does in the memory of constant weights.

Integers that are cast to floating point, with a zero point taken off and multiplied by a scale, are compressed weights to it, which it does not
compute ahead. Where the zero point or the scale is known only at run time, each run goes on with the result of the one before, or a zero point of
several elements is taken wrongly. Where a constant scale has more axes than the weights, their product lacks them. With the larger of a value and
itself behind the Cast they are computed ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from onnx import TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import FLOATS, flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_T = TensorProto
#: What compressed weights go through: the zero point, then the scale.
_ARITHMETIC = frozenset({"Mul", "Sub"})
#: Types that weights are not compressed to.
_PLAIN = frozenset({_T.BFLOAT16, _T.BOOL, _T.DOUBLE, _T.FLOAT, _T.FLOAT16, *(set(INTEGER_BITS) - {_T.INT8, _T.UINT8})})
_REASON = "OpenVINO would take it for compressed weights, and scale them in place in each run"


def weights_cast_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which casts of such weights are computed ahead; None where there are none."""
    if not contents.has({"Cast"}) or not contents.has({"Mul"}) or contents.tensor_types <= _PLAIN:
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}weights", "weights_cast_apart", "computed ahead", _REASON)


class _Cast(NamedTuple):
    """A Cast of such weights, or what comes of it: the place of the first arithmetic on it, with that of its result there, whether something of a run is in it, and how many axes the weights have."""

    first: tuple[int, int] | None = None
    of_run: bool = False
    axes: int = 0


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, int]]:
    """The places of the first arithmetic on casts of constants that are multiplied, with that of the Cast's result, where something of a run is in the product, or a scale with more axes."""
    cast: dict[str, _Cast] = {}
    for place, node in enumerate(nodes):
        if node.operator == "Cast" and _to_floats(node) and _is_compressed(node.input[0], walked):
            cast[node.output[0]] = _Cast(axes=_axes(node.input[0], walked))
        elif node.operator in _ARITHMETIC:
            at = next((i for i, name in enumerate(node.input) if name in cast), None)
            if at is None:
                continue
            before = cast[node.input[at]]
            of_run = before.of_run or not all(name in walked.stored or name in cast for name in node.input)
            now = _Cast(before.first or (place, at), of_run, before.axes)
            wider = any(name in walked.stored and _axes(name, walked) > before.axes for name in node.input)
            if node.operator == "Mul" and (now.of_run or wider) and now.first is not None:
                yield now.first
            else:
                cast[node.output[0]] = now


def _to_floats(node: NodeView) -> bool:
    return any(a.name == "to" and a.i in FLOATS for a in node.proto.attribute)


def _axes(name: str, walked: Walked) -> int:
    """How many axes a constant has; 0 where that is not known."""
    tensor = walked.stored[name]
    return 0 if tensor is None else len(tensor.dims)


def _is_compressed(name: str, walked: Walked) -> bool:
    """Whether a constant has a type of which OpenVINO takes a Cast for that of compressed weights."""
    tensor = walked.stored.get(name)
    return name in walked.stored and (tensor is None or tensor.data_type not in _PLAIN)
