# SPDX-License-Identifier: Apache-2.0
"""Timing two ways to run a model against each other, in turn, so that a busy machine disturbs both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx_multi_backend.measuring.clock import in_turns, seconds_per_call
from onnx_multi_backend.measuring.intervals import median_interval, ratio

#: Rounds of a comparison, how many there may be while nobody is faster, and the seconds that each side of a round takes at least.
_ROUNDS, _MOST_ROUNDS, _AT_LEAST = 15, 60, 0.02


@dataclass(frozen=True)
class Ratio:
    """How long one way takes, in times of the other.

    Attributes
    ----------
    median, low, high : float
        The median of the rounds, and what it lies between with a confidence of 95 %.
    seconds, other_seconds : float
        Median seconds of a run, of both.
    """

    median: float
    low: float
    high: float
    seconds: float
    other_seconds: float

    @property
    def faster(self) -> bool:
        """Whether the first is faster, beyond what noise could make."""
        return self.high < 1


def compare(one: Callable[[], object], other: Callable[[], object]) -> Ratio:
    """Time two callables in turn, after a warm-up of both."""
    for call in (one, other):
        call()
    repeats = max(1, round(_AT_LEAST / max(seconds_per_call(other, 3), 1e-7)))
    ones: list[float] = []
    others: list[float] = []
    while True:
        taken = in_turns({"one": one, "other": other}, rounds=_ROUNDS, repeat=repeats, warm_up=0, settle=True)
        ones += taken["one"]
        others += taken["other"]
        median, low, high = ratio(ones, others)
        if not low <= 1 <= high or len(ones) >= _MOST_ROUNDS:
            return Ratio(median, low, high, median_interval(ones)[0], median_interval(others)[0])
