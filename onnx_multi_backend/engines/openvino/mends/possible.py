# SPDX-License-Identifier: Apache-2.0
"""Whether a model may hold what has to be mended: that takes less time than looking at each of OpenVINO's nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.models.contents import Contents

_BYTES = frozenset(
    getattr(TensorProto, name)
    for name in ("INT2", "INT4", "INT8", "UINT2", "UINT4", "UINT8")
    if hasattr(TensorProto, name)
)
_SHORT = _BYTES | {TensorProto.INT16, TensorProto.UINT16}
#: What makes bytes without naming the type, and what names it in an attribute.
_QUANTIZING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
_NAMING = tuple(
    """Bernoulli BlackmanWindow Cast EyeLike HammingWindow HannWindow MelWeightMatrix Multinomial RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike""".split()
)
#: Reductions, and what OpenVINO calls them.
REDUCTIONS: Mapping[str, str] = {
    **{
        name: name
        for name in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
    },
    "ReduceLogSum": "ReduceSum",
    "ReduceLogSumExp": "ReduceSum",
    "ReduceSumSquare": "ReduceSum",
    "Size": "ReduceProd",
}


def _makes_integers(contents: Contents, operators: Iterable[str]) -> bool:
    nodes = contents.of(*operators)
    return not Facts(contents.model, contents).are_floats(name for node in nodes for name in node.output)


def divides_integers(contents: Contents) -> bool:
    """Whether there may be quotients of integers."""
    return _makes_integers(contents, ("Div",))


def reduces_integers(contents: Contents) -> bool:
    """Whether there may be reductions of integers."""
    return _makes_integers(contents, REDUCTIONS)


def stores_bytes(contents: Contents) -> bool:
    """Whether a tensor has 8 bits or fewer for each element."""
    return not contents.tensor_types.isdisjoint(_BYTES | {TensorProto.BOOL})


def holds_short_integers(contents: Contents) -> bool:
    """Whether there may be integers of 16 bits or fewer."""
    if contents.holding or contents.has(_QUANTIZING) or not contents.tensor_types.isdisjoint(_SHORT):
        return True
    given = any(value.type.tensor_type.elem_type in _SHORT for value in contents.model.graph.input)
    return given or any(a.i in _SHORT for node in contents.of(*_NAMING) for a in node.attribute)
