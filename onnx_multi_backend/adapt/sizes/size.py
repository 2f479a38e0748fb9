# SPDX-License-Identifier: Apache-2.0
"""A size along an axis: known, told by a run alone, or neither is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import zip_longest


class Open(Enum):
    """A size that a run alone tells."""

    OPEN = "open"


OPEN = Open.OPEN
#: None where it may be known to an engine.
Size = int | Open | None
Sizes = tuple[Size, ...]


#: Beyond which a number is none of int64.
_MOST = 2**63 - 1


def held(size: int) -> int | None:
    """A size that is computed, where int64 holds it."""
    return size if size <= _MOST else None


def is_open(sizes: Iterable[Size] | None) -> bool:
    """Whether a run alone tells one of these."""
    return sizes is not None and OPEN in sizes


def broadcast(operands: Sequence[Sizes]) -> Sizes:
    """The sizes of what is computed of operands, element by element."""
    if len(operands) == 2 and operands[0] == operands[1] and None not in operands[0]:
        return operands[0]
    backwards = zip_longest(*(sizes[::-1] for sizes in operands), fillvalue=1)
    return tuple(map(_joined, backwards))[::-1]


def _joined(sizes: tuple[Size, ...]) -> Size:
    """The size along one axis of all operands."""
    found: Size = 1
    for size in sizes:
        if size == 1 or (size is OPEN and found is OPEN):
            continue
        if isinstance(size, int):
            return size  # the others are 1, or the same
        found = size if found == 1 else None
    return found


def same(sizes: Iterable[Size]) -> Size:
    """The size along an axis along which all have the same."""
    found = set(sizes)
    known = next((size for size in found if isinstance(size, int)), None)
    return OPEN if found == {OPEN} else known


def total(sizes: Iterable[Size]) -> Size:
    """The sum of sizes."""
    count, is_told = 0, True
    for size in sizes:
        if size is None:
            return None
        if isinstance(size, int):
            count += size
        else:
            is_told = False
    return held(count) if is_told else OPEN
