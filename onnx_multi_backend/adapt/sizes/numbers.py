# SPDX-License-Identifier: Apache-2.0
"""Integers that are computed of sizes, to which values are reshaped or expanded: numbers and short lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.adapt.sizes.size import OPEN, Size, Sizes
from onnx_multi_backend.adapt.walked import NodeView, Walked
from onnx_multi_backend.models.tensors import is_whole

#: Longer ones are not followed.
_LONGEST = 64
#: Those beyond may have wrapped around, in a Cast as well.
_MOST = 2**31 - 1
#: What has the numbers of what it reads first.
_MOVING = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})
_WHOLE = frozenset({TensorProto.INT32, TensorProto.INT64})


def _quotient(one: int, other: int) -> int | None:
    """As integers are divided: towards zero."""
    if not other:
        return None
    return one // other if (one < 0) == (other < 0) else -(-one // other)


_COMPUTING: Mapping[str, Callable[[int, int], int | None]] = {
    "Add": int.__add__,
    "Div": _quotient,
    "Equal": int.__eq__,
    "Max": max,
    "Min": min,
    "Mul": int.__mul__,
    "Sub": int.__sub__,
}
#: What tells no more of a size that a run tells, and a number above 0.
_LEFT_OPEN = frozenset({"Add", "Div", "Mul"})
FOLLOWED = frozenset(
    {*_MOVING, *_COMPUTING, "Cast", "Concat", "ConstantOfShape", "Gather", "Range", "Shape", "Slice", "Where"}
)


class Numbers:
    """The integers of values, and of constants once they are asked for.

    Parameters
    ----------
    walked : Walked
    unknown : collection of str
        Names that may stand for other values, of which nothing is told.
    """

    def __init__(self, walked: Walked, unknown: Collection[str]) -> None:
        self._walked, self._unknown = walked, unknown
        self._of: dict[str, Sizes | None] = {}

    def of(self, name: str) -> Sizes | None:
        """The integers of a number or list."""
        if name not in self._of:
            array = self._stored(name)
            is_meant = array is not None and array.dtype.kind in "ib" and array.ndim < 2 and array.size <= _LONGEST
            self._of[name] = tuple(array.ravel().tolist()) if array is not None and is_meant else None
        return self._of[name]

    def _stored(self, name: str) -> np.ndarray | None:
        """What a constant holds; None for what is computed of constants, as a Cast may make other numbers."""
        maker = self._walked.makers.get(name)
        is_constant = maker is None or maker.op_type == "Constant"
        return self._walked.array(name) if is_constant and name not in self._unknown else None

    def learn(self, node: NodeView, sizes: Mapping[str, Sizes]) -> None:
        """Tell the integers that a node makes, of one output, from the sizes of what it reads."""
        made = self._made(node, sizes) if all(node.input[:1]) and node.input else None
        if made is not None and len(made) <= _LONGEST:
            kept = tuple(None if isinstance(number, int) and abs(number) > _MOST else number for number in made)
            if any(number is not None for number in kept):
                self._of[node.output[0]] = kept

    def _made(self, node: NodeView, sizes: Mapping[str, Sizes]) -> Sizes | None:
        operator, read = node.operator, node.input
        if operator == "Shape":
            given, named = sizes.get(read[0]), {a.name: a.i for a in node.proto.attribute}
            return None if given is None else given[named.get("start", 0) : named.get("end", len(given))]
        if operator == "Concat":
            return self._joined(read, sizes)
        if operator in _MOVING:
            return self.of(read[0])
        if operator == "Cast":
            to = next((a.i for a in node.proto.attribute if a.name == "to"), TensorProto.UNDEFINED)
            return self.of(read[0]) if to in _WHOLE else None
        if operator == "ConstantOfShape":
            return self._filled(node)
        if operator == "Where":
            return self._chosen(read)
        lists = [self.of(name) for name in read]
        known = [numbers for numbers in lists if numbers is not None]
        if operator in _COMPUTING:
            return _computed(operator, known) if len(known) == len(lists) else None
        if operator == "Gather" and len(lists) > 1:
            return _taken(lists[0], whole(lists[1]))
        if operator == "Slice" and len(lists) > 2:
            steps = whole(lists[4]) if len(lists) > 4 and read[4] else (1,)
            return _sliced(lists[0], whole(lists[1]), whole(lists[2]), steps)
        return None

    def _joined(self, read: list[str], sizes: Mapping[str, Sizes]) -> Sizes | None:
        """What a Concat makes; an unknown list of a known length counts."""
        found: list[Size] = []
        for name in read:
            numbers = self.of(name)
            if numbers is None:
                length = sizes.get(name, ())
                if len(length) != 1 or not isinstance(length[0], int) or length[0] > _LONGEST:
                    return None
                numbers = (None,) * length[0]
            found += numbers
        return tuple(found)

    def _filled(self, node: NodeView) -> Sizes | None:
        length = self.of(node.input[0])
        if length is None or len(length) != 1 or not isinstance(length[0], int) or not 0 < length[0] <= _LONGEST:
            return None
        held = next((a.t for a in node.proto.attribute if a.name == "value"), None)
        if held is None or held.data_type not in _WHOLE or list(held.dims) != [1] or not is_whole(held):
            return None
        return (int(numpy_helper.to_array(held).item()),) * length[0]

    def _chosen(self, read: list[str]) -> Sizes | None:
        if len(read) != 3:
            return None
        condition, one, other = map(self.of, read)
        if condition is None or one is None or other is None or not len(condition) == len(one) == len(other):
            return None
        return tuple(
            (a if c else b) if isinstance(c, int) else a if a == b else None
            for c, a, b in zip(condition, one, other, strict=True)
        )


def _computed(operator: str, operands: list[Sizes]) -> Sizes | None:
    """Arithmetic with a number, or of two lists."""
    if len(operands) != 2:
        return None
    one, other = operands
    if len(one) != len(other):
        one, other = (one * len(other), other) if len(one) == 1 else (one, other * len(one))
    if len(one) != len(other):
        return None
    return tuple(_of_two(operator, a, b) for a, b in zip(one, other, strict=True))


def _of_two(operator: str, one: Size, other: Size) -> Size:
    if isinstance(one, int) and isinstance(other, int):
        made = _COMPUTING[operator](one, other)
        return None if made is None else int(made)
    known = one if isinstance(one, int) else other
    if not isinstance(known, int) or OPEN not in (one, other):
        return None
    if operator == "Equal" and known < 0:
        return 0
    return OPEN if operator in _LEFT_OPEN and known > 0 else None


def _taken(data: Sizes | None, places: tuple[int, ...] | None) -> Sizes | None:
    if data is None or places is None or not all(-len(data) <= place < len(data) for place in places):
        return None
    return tuple(data[place] for place in places)


def _sliced(data: Sizes | None, *bounds: tuple[int, ...] | None) -> Sizes | None:
    """What lies between a start and an end, by a step; engines differ in steps backwards from beyond the ends."""
    known = [bound[0] for bound in bounds if bound is not None and len(bound) == 1]
    if data is None or len(known) < len(bounds) or known[2] < 1:
        return None
    return data[slice(*known)]


def whole(numbers: Sizes | None) -> tuple[int, ...] | None:
    """Integers all of which are known."""
    known = tuple(number for number in numbers or () if isinstance(number, int))
    return known if numbers is not None and len(known) == len(numbers) else None
