# SPDX-License-Identifier: Apache-2.0
"""The sizes of what moves, chooses or repeats elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx_multi_backend.adapt.sizes.known import Known, from_zero, integer
from onnx_multi_backend.adapt.sizes.size import OPEN, Size, Sizes, held, same, total
from onnx_multi_backend.adapt.walked import NodeView
from onnx_multi_backend.models.plausible import MOST_AXES

#: Beyond which a Slice goes to the end.
_TO_THE_END = 2**31 - 1


def gather(known: Known, node: NodeView) -> Sizes | None:
    data, places = (known.read(node, place) for place in (0, 1))
    axis = integer(node.proto, "axis", 0)
    if data is None or places is None or not -len(data) <= axis < len(data):
        return None
    axis %= len(data)
    return data[:axis] + places + data[axis + 1 :]


def gather_elements(known: Known, node: NodeView) -> Sizes | None:
    return known.read(node, 1)


def gather_slices(known: Known, node: NodeView) -> Sizes | None:
    data, places = (known.read(node, place) for place in (0, 1))
    batch = integer(node.proto, "batch_dims", 0)
    if data is None or not places or not isinstance(places[-1], int) or not 0 <= batch + places[-1] <= len(data):
        return None
    return (*places[:-1], *data[batch + places[-1] :])


def concat(known: Known, node: NodeView) -> Sizes | None:
    read = [known.sizes.get(name) for name in node.input]
    told = [sizes for sizes in read if sizes is not None]
    if not told:
        return None
    axis, rank = integer(node.proto, "axis", MOST_AXES), len(told[0])  # of old opsets it has a default
    if len(told) < len(read) or any(len(sizes) != rank for sizes in told) or not -rank <= axis < rank:
        return (None,) * rank
    return tuple(total(sizes) if i == axis % rank else same(sizes) for i, sizes in enumerate(zip(*told, strict=True)))


def transpose(known: Known, node: NodeView) -> Sizes | None:
    data = known.read(node, 0)
    order = next((a.ints[:] for a in node.proto.attribute if a.name == "perm"), None)
    if data is None or order is None:
        return data and data[::-1]
    return tuple(data[i] for i in order) if sorted(order) == list(range(len(data))) else None


def reshape(known: Known, node: NodeView) -> Sizes | None:
    wanted = known.listed(node, 1)
    if wanted is None:
        return None
    data, keeps_zero = known.read(node, 0), bool(integer(node.proto, "allowzero", 0))
    made = [
        size if size != 0 or keeps_zero else data[i] if data is not None and i < len(data) else None
        for i, size in enumerate(wanted)
    ]
    left = [i for i, size in enumerate(made) if size == -1]
    if left:
        others = [size for i, size in enumerate(made) if i != left[0]]
        made[left[0]] = _rest(data, others) if len(left) == 1 else None
    return tuple(None if isinstance(size, int) and size < 0 else size for size in made)


def flatten(known: Known, node: NodeView) -> Sizes:
    data, axis = known.read(node, 0), integer(node.proto, "axis", 1)
    if data is None or not -len(data) <= axis <= len(data):
        return (None, None)
    axis += len(data) if axis < 0 else 0
    return _product(data[:axis]), _product(data[axis:])


def tile(known: Known, node: NodeView) -> Sizes | None:
    data, times = known.read(node, 0), known.listed_sizes(node, 1)
    if data is None or times is None or len(times) != len(data):
        return data and (None,) * len(data)
    return tuple(map(_times, data, times))


def unsqueeze(known: Known, node: NodeView) -> Sizes | None:
    data, axes = known.read(node, 0), known.axes(node)
    if data is None or axes is None:
        return None
    rank = len(data) + len(axes)
    if (at := from_zero(axes, rank)) is None or len(at) != len(axes):
        return None
    left = iter(data)
    return tuple(1 if i in at else next(left) for i in range(rank))


def squeeze(known: Known, node: NodeView) -> Sizes | None:
    data, axes = known.read(node, 0), known.axes(node)
    if data is None or axes is None:
        return None
    if not axes:  # every axis of one element
        return tuple(size for size in data if size != 1) if all(isinstance(size, int) for size in data) else None
    at = from_zero(axes, len(data))
    return None if at is None else tuple(size for i, size in enumerate(data) if i not in at)


def split(known: Known, node: NodeView) -> Sizes | None:
    data, axis = known.read(node, 0), integer(node.proto, "axis", 0)
    if data is None or not -len(data) <= axis < len(data):
        return None
    return tuple(None if i == axis % len(data) else size for i, size in enumerate(data))


def slice_(known: Known, node: NodeView) -> Sizes | None:
    data = known.read(node, 0)
    if data is None:
        return None
    made = list(data)
    for axis, bounds in _slices(known, node, len(data)):
        if axis is None:
            return (None,) * len(data)
        size = data[axis]
        goes_to_the_end = (
            bounds is not None
            and (bounds.start, bounds.step) == (0, 1)
            and isinstance(bounds.stop, int)
            and bounds.stop >= _TO_THE_END
        )
        if bounds is not None and OPEN in (bounds.start, bounds.stop):
            made[axis] = OPEN if size else size
        elif isinstance(size, int) and bounds is not None:
            made[axis] = len(range(size)[bounds])
        elif not goes_to_the_end:
            made[axis] = None
    return tuple(made)


def _slices(known: Known, node: NodeView, rank: int) -> list[tuple[int | None, slice | None]]:
    """The axes that a Slice cuts, None for one that is not known, and where it cuts them."""
    attributes = {a.name: a.ints[:] for a in node.proto.attribute}
    read = dict(zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False))
    given = {
        name: known.numbers.of(read[name]) if read.get(name) else attributes.get(name)
        for name in ("starts", "ends", "axes", "steps")
    }
    axes, starts = given["axes"], given["starts"]
    if axes is None and (read.get("axes") or starts is None):
        return [(None, None)]
    axes = list(range(len(starts or ()))) if axes is None else axes
    found: list[tuple[int | None, slice | None]] = []
    for i, axis in enumerate(axes):
        if not isinstance(axis, int) or not -rank <= axis < rank:
            return [(None, None)]
        bounds = [
            numbers[i] if (numbers := given[name]) is not None and i < len(numbers) else None
            for name in ("starts", "ends", "steps")
        ]
        step = bounds[2] if given["steps"] is not None else None if read.get("steps") else 1
        start, end = bounds[:2]
        is_known = None not in (start, end) and isinstance(step, int) and step > 0  # engines differ in others
        found.append((axis % rank, slice(start, end, step) if is_known else None))
    return found


def _rest(data: Sizes | None, others: Sequence[Size]) -> Size:
    """The size that is left to a Reshape: open where more of its data's sizes are than of the others, each of which stands for one of them."""
    if data is None or not all(data) or None in others:
        return None
    if data.count(OPEN) != others.count(OPEN):
        return OPEN if data.count(OPEN) > others.count(OPEN) else None
    part = math.prod(size for size in others if isinstance(size, int))
    return None if OPEN in data or not part else held(math.prod(size for size in data if isinstance(size, int)) // part)


def _product(sizes: Sizes) -> Size:
    made: Size = 1
    for size in sizes:
        made = _times(made, size)
    return made


def _times(one: Size, other: Size) -> Size:
    """The product of two sizes."""
    if isinstance(one, int) and isinstance(other, int):
        return held(one * other)
    return None if None in (one, other) or 0 in (one, other) else OPEN
