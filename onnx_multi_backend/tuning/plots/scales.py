# SPDX-License-Identifier: Apache-2.0
"""Scales of plots: where a value lies, and which values are written beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: What is closer to 0 stands where this does.
_LEAST = 1e-100


@dataclass(frozen=True)
class Scale:
    """From values to places.

    Attributes
    ----------
    low, high : float
        The least and the greatest value; above 0 where it is logarithmic.
    start, end : float
        Where these two lie.
    logarithmic : bool
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = True

    def __call__(self, value: float) -> float:
        """Where a value lies; one beyond the ends lies at the end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 9) -> list[float]:
        """Round values, three at least and as many as asked at most."""
        candidates = _round_powers(self.low, self.high) if self.logarithmic else []
        steps = [_even(self.low, self.high, parts) for parts in (most - 1, most // 2, 4, 3)]
        for found in (*candidates, *steps):
            if 3 <= len(found) <= most:
                return found
        return steps[-1]


def logarithmic(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale that holds all values that are finite and above 0, with some room on both sides."""
    found = [min(max(value, _LEAST), 1 / _LEAST) for value in values if math.isfinite(value) and value > 0] or [1.0]
    low, high = min(found), max(found)
    room = max((high / low) ** 0.04, 1.05)
    return Scale(low / room, high * room, start, end)


def from_zero(high: float, start: float, end: float) -> Scale:
    """An even scale from 0."""
    return Scale(0.0, high if math.isfinite(high) and high > 0 else 1.0, start, end, logarithmic=False)


def _round_powers(low: float, high: float) -> list[list[float]]:
    """From the closest ticks to the widest."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = range(first, last + 1)
    closest = [[step * 10.0**power for power in decades for step in steps] for steps in ((1, 2, 5), (1, 3), (1,))]
    wider = [[10.0**power for power in decades if power % every == 0] for every in (2, 3, 5, 10, 20, 50)]
    return [[value for value in values if low <= value <= high] for values in (*closest, *wider)]


def _even(low: float, high: float, parts: int) -> list[float]:
    raw = (high - low) / max(parts, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * (1 - 1e-9))
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
