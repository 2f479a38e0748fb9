# SPDX-License-Identifier: Apache-2.0
"""One node on wide types instead of narrow ones: moved as it is, or with the rounding written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.single_node import Scope
from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.tensors import WIDER, is_whole

_T = TensorProto


class NarrowFloat(NamedTuple):
    """A narrow type of floating-point numbers.

    Attributes
    ----------
    mantissa : int
        Bits of the fraction.
    lowest : int
        Exponent of the smallest normal number; below it lie the subnormal ones.
    highest : int
        Exponent of the largest number.
    largest : float
    beyond : float
        What is too large becomes this where a Cast does not saturate.
    signed_zero : bool
    nan : bool
        Whether there is a NaN. Without one, NaN becomes -0, as ml_dtypes and so ONNX's reference have it.
    """

    mantissa: int
    lowest: int
    highest: int
    largest: float
    beyond: float = np.nan
    signed_zero: bool = True
    nan: bool = True


#: Source: https://onnx.ai/onnx/technical/float8.html and float4.html.
FLOATS: Mapping[int, NarrowFloat] = {
    _T.FLOAT4E2M1: NarrowFloat(1, 0, 2, 6.0, 6.0, nan=False),
    _T.FLOAT8E4M3FN: NarrowFloat(3, -6, 8, 448.0),
    _T.FLOAT8E4M3FNUZ: NarrowFloat(3, -7, 7, 240.0, signed_zero=False),
    _T.FLOAT8E5M2: NarrowFloat(2, -14, 15, 57344.0, np.inf),
    _T.FLOAT8E5M2FNUZ: NarrowFloat(2, -15, 15, 57344.0, signed_zero=False),
}


#: Bits, and whether there is a sign.
INTEGERS: Mapping[int, tuple[int, bool]] = {
    _T.INT4: (4, True),
    _T.UINT4: (4, False),
    _T.INT2: (2, True),
    _T.UINT2: (2, False),
}


def widened(tensor: TensorProto) -> TensorProto:
    if not is_whole(tensor):
        raise InvalidModelError(
            f"The tensor {tensor.name!r} has fewer or more values than its shape. Export the model again."
        )
    wide = helper.tensor_dtype_to_np_dtype(WIDER[tensor.data_type])
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(wide), tensor.name)


class OnWiderTypes:
    """One node, on wide types instead of narrow ones."""

    def __init__(self, node: NodeProto, scope: Scope, kinds: set[int]) -> None:
        self._node = node
        self._scope = scope
        self._kinds = kinds
        self._made: list[NodeProto] = []
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def nodes(self) -> Iterator[NodeProto]:
        node = self._node
        if not node.output:
            yield node
            return
        output, made = node.output[0], self._kind(node.output[0])
        source = self._kind(node.input[0]) if node.input else 0
        match node.op_type:
            case "Cast" | "CastLike" if made in self._kinds:
                self._narrow(node.input[0], output, made, source)
            case "Cast" if source in self._kinds:
                self._add("Cast", [node.input[0]], output, to=made)
            case "QuantizeLinear" if made in self._kinds:
                self._quantize(output, made)
            case "DequantizeLinear" if source in self._kinds:
                x = self._add("Cast", [node.input[0]], to=_T.FLOAT)
                if len(node.input) > 2 and node.input[2]:
                    x = self._add("Sub", [x, self._by_axis(node.input[2])])
                self._add("Cast", [self._add("Mul", [x, self._by_axis(node.input[1])])], output, to=made)
            case "Constant" | "ConstantOfShape" if made in self._kinds and "value" in self._attributes:
                value = self._attributes["value"]
                if value.data_type in self._kinds:  # else the model says of it what is not so
                    yield helper.make_node(node.op_type, node.input, [output], value=widened(value))
                else:
                    yield node
                return
            case _:
                yield node
                return
        yield from self._made

    def _kind(self, name: str) -> int:
        found = self._scope.types.get(name)
        return found.tensor_type.elem_type if found is not None and found.HasField("tensor_type") else 0

    def _has_rank(self, name: str) -> bool:
        found = self._scope.types.get(name)
        return found is not None and found.tensor_type.HasField("shape")

    def _rank(self, name: str) -> int:
        found = self._scope.types.get(name)
        return len(found.tensor_type.shape.dim) if found is not None else 0

    def _add(self, op_type: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or f"{self._node.output[0]}/omb_carried_{len(self._made)}"
        name = f"{output}/{GUARDED if op_type == 'ReduceMax' else 'node'}"  # what it reduces is finite
        self._made.append(helper.make_node(op_type, inputs, [output], name, **attributes))
        return output

    def _number(self, value: Any, kind: type = np.float32) -> str:
        return self._add("Constant", [], value=numpy_helper.from_array(np.array(value, kind)))

    def _where(self, condition: str, yes: str, no: str) -> str:
        return self._add("Where", [condition, yes, no])

    def _narrow(self, x: str, output: str, kind: int, source: int) -> None:
        if kind in FLOATS:
            if source != _T.FLOAT and not (source in self._kinds and source in FLOATS):
                x = self._add("Cast", [x], to=_T.FLOAT)
            self._round(x, output, kind, saturate=bool(self._attributes.get("saturate", 1)))
        else:
            self._wrap(self._add("Cast", [x], to=_T.INT32), output, kind)

    def _round(self, x: str, output: str, kind: int, *, saturate: bool) -> None:
        """Round to the multiple of the step that the number's exponent gives.

        Written with ``Less`` and ``LessOrEqual`` alone: OpenVINO's ``Greater`` is true of NaN with AVX-512 and with SSE4.2.
        """
        narrow = FLOATS[kind]
        size, zero, one = self._add("Abs", [x]), self._number(0), self._number(1)
        steps = [2.0 ** (k - narrow.mantissa) for k in range(narrow.lowest, narrow.highest + 1)]
        # The step doubles at each power of two: it is the largest of those that belong to the powers that the number has reached.
        powers = self._number([2.0**k for k in range(narrow.lowest + 1, narrow.highest + 1)])
        last = self._add("Unsqueeze", [size, self._number([-1], np.int64)])
        reached = self._add("Cast", [self._add("LessOrEqual", [powers, last])], to=_T.FLOAT)
        steps_reached = self._add("Mul", [reached, self._number(steps[1:])])
        # Where there are no elements, ONNX Runtime (1.24) ignores an axis that is counted from the end.
        axis = self._rank(self._node.input[0]) if self._has_rank(self._node.input[0]) else -1
        largest = self._add("ReduceMax", [steps_reached, self._number([axis], np.int64)], keepdims=0)
        step = self._add("Max", [largest, self._number(steps[0])])
        rounded = self._add("Mul", [self._add("Round", [self._add("Div", [size, step])]), step])
        too_large = self._add("Less", [self._number(narrow.largest), rounded])
        rounded = self._where(too_large, self._number(narrow.largest if saturate else narrow.beyond), rounded)
        below = self._add("Less", [x, zero])
        if not narrow.signed_zero:  # and what is rounded to zero has no sign
            below = self._add("And", [below, self._add("Less", [zero, rounded])])
        if not narrow.nan:
            lost = self._add("IsNaN", [x])
            rounded = self._where(lost, zero, rounded)
            below = self._add("Or", [below, lost])
        if narrow.signed_zero:
            below = self._add("Or", [below, self._add("Less", [self._add("Div", [one, x]), zero])])
        # A product, because the Where of ONNX Runtime makes 0 of -0.
        twice = self._add("Mul", [self._add("Cast", [below], to=_T.FLOAT), self._number(2)])
        self._add("Mul", [rounded, self._add("Sub", [one, twice])], output)

    def _wrap(self, x: str, output: str, kind: int) -> None:
        """Keep the low bits."""
        bits, signed = INTEGERS[kind]
        half = self._number(2 ** (bits - 1) if signed else 0, np.int32)
        low = self._add("Mod", [self._add("Add", [x, half]), self._number(2**bits, np.int32)])
        self._add("Cast", [self._add("Sub", [low, half])], output, to=WIDER[kind])

    def _quantize(self, output: str, kind: int) -> None:
        x = self._add("Cast", [self._node.input[0]], to=_T.FLOAT)
        x = self._add("Div", [x, self._by_axis(self._node.input[1])])
        zero_point = self._node.input[2] if len(self._node.input) > 2 else ""
        if kind in FLOATS:
            self._round(x, output, kind, saturate=bool(self._attributes.get("saturate", 1)))
            return
        x = self._add("Round", [x])
        if zero_point:
            x = self._add("Add", [x, self._by_axis(zero_point)])
        bits, signed = INTEGERS[kind]
        low = -(2 ** (bits - 1)) if signed else 0
        x = self._add("Max", [self._add("Min", [x, self._number(low + 2**bits - 1)]), self._number(low)])
        self._add("Cast", [x], output, to=WIDER[kind])

    def _by_axis(self, name: str) -> str:
        """A scale or zero point in float32, shaped so that it broadcasts: one in all, one an index, or one a block."""
        x, wide = self._node.input[0], self._add("Cast", [name], to=_T.FLOAT)
        axis, block = self._attributes.get("axis", 1), self._attributes.get("block_size", 0)
        if self._has_rank(name) and self._rank(name) == 0:
            return wide
        ranked = next((known for known in (x, self._node.output[0]) if self._has_rank(known)), None)
        if ranked is None and not block:
            return self._add("Reshape", [wide, self._shape_by_axis(x, axis)])
        rank = self._rank(ranked or x)
        axis %= max(rank, 1)
        if not block:
            shape = [1] * rank
            if shape:  # else a scale of one element for a scalar
                shape[axis] = -1
            return self._add("Reshape", [wide, self._number(shape, np.int64)])
        # Each stands for a block along the axis; the last block may be short.
        size = self._add("Gather", [self._add("Shape", [x]), self._number(axis, np.int64)])
        index = self._add("Range", [self._number(0, np.int64), size, self._number(1, np.int64)])
        return self._add("Gather", [wide, self._add("Div", [index, self._number(block, np.int64)])], axis=axis)

    def _shape_by_axis(self, x: str, axis: int) -> str:
        """Ones but for -1 along an axis, as many as a tensor has axes, where only a run tells how many."""
        rank = self._add("Size", [self._add("Shape", [x])])
        one, along = self._number(1, np.int64), self._number(axis, np.int64)
        if axis < 0:
            along = self._add("Add", [rank, along])
        index = self._add("Range", [self._number(0, np.int64), rank, one])
        return self._where(self._add("Equal", [index, along]), self._number(-1, np.int64), one)
