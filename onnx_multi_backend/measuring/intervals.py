# SPDX-License-Identifier: Apache-2.0
"""Medians, and between what the true ones lie; nothing is assumed of the distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: How often `slower` draws again.
_DRAWS = 4000


class Interval(NamedTuple):
    """A median, and what the true one lies between with a confidence of 95 %."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    """The median and an interval that holds the true one with a confidence of 95 %: order statistics, for any distribution."""
    ordered = sorted(values)
    count = len(ordered)
    reach = math.ceil(0.98 * math.sqrt(count))  # 1.96 standard deviations of a binomial of one half
    middle = count // 2
    return Interval(float(np.median(ordered)), ordered[max(middle - reach, 0)], ordered[min(middle + reach, count - 1)])


def ratio(ones: Sequence[float], others: Sequence[float]) -> Interval:
    """How many times the others the ones are, both taken in turns: what disturbed a round disturbed both.

    With fewer than six rounds nothing can be said with this confidence, and the interval is all positive numbers.
    """
    median, low, high = median_interval([a / b for a, b in zip(ones, others, strict=True)])
    return Interval(median, low, high) if len(ones) >= 6 else Interval(median, 0.0, math.inf)


def of_two_runs(new: Sequence[float], old: Sequence[float]) -> tuple[Interval, float]:
    """The ratio of two medians that were not taken in turns, and the probability that the new one is larger.

    By drawing rounds again with replacement (Efron's bootstrap): it knows the noise between rounds of a run, and nothing of what changed on
    the machine between the two runs.
    """
    generator = np.random.default_rng(0)

    def drawn(values: Sequence[float]) -> np.ndarray:
        array = np.asarray(values, np.float64)
        medians: np.ndarray = np.median(generator.choice(array, (_DRAWS, len(array))), axis=1)
        return medians

    ratios = drawn(new) / drawn(old)
    low, high = np.quantile(ratios, [0.025, 0.975])
    larger = float(np.mean(ratios > 1) + np.mean(ratios == 1) / 2)
    return Interval(float(np.median(new) / np.median(old)), float(low), float(high)), larger


def spread(values: Sequence[float]) -> float:
    """The interquartile range by the median: how noisy figures are."""
    if len(values) < 2:
        return 0.0
    low, middle, high = np.quantile(np.asarray(values, np.float64), [0.25, 0.5, 0.75])
    return float((high - low) / middle) if middle > 0 else 0.0
