# SPDX-License-Identifier: Apache-2.0
"""Medians, and between what the true ones lie; nothing is assumed of how rounds are distributed."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Student's t of a confidence of 95 %, by how many processes there are beyond the first.
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)

#: How often `slower` draws again.
_DRAWS = 4000


class Interval(NamedTuple):
    """A median, and what the true one lies between with a confidence of 95 %."""

    median: float
    low: float
    high: float


def by_process(rounds: Sequence[float], sizes: Sequence[int] = ()) -> list[Sequence[float]]:
    """Rounds by the processes in which they were taken.

    Parameters
    ----------
    rounds : sequence of float
    sizes : sequence of int
        How many rounds each process took; one process where these do not add up.
    """
    filled = [size for size in sizes if size]
    if sum(filled) != len(rounds):
        return [rounds] if len(rounds) else []
    ends = list(itertools.accumulate(filled))
    return [rounds[end - size : end] for size, end in zip(filled, ends, strict=True)]


def median_of(rounds: Sequence[float], sizes: Sequence[int] = ()) -> float:
    """The median of the processes' medians."""
    return statistics.median(map(statistics.median, by_process(rounds, sizes)))


def median_interval(rounds: Sequence[float], sizes: Sequence[int] = ()) -> Interval:
    """The median and an interval that holds the true one with a confidence of 95 %: order statistics, for any distribution.

    Where rounds are of several processes (`by_process`), it holds what the next process would have too: by Student's t of the logarithms of
    the processes' medians.
    """
    ordered = sorted(rounds)
    count = len(ordered)
    reach = math.ceil(0.98 * math.sqrt(count))  # 1.96 standard deviations of a binomial of one half
    middle = count // 2
    low, high = ordered[max(middle - reach, 0)], ordered[min(middle + reach, count - 1)]
    medians = [statistics.median(group) for group in by_process(rounds, sizes)]
    if len(medians) > 1 and min(medians) > 0:
        logs = np.log(medians)
        reach_of_mean = _STUDENT[min(len(logs) - 2, len(_STUDENT) - 1)] * logs.std(ddof=1) / math.sqrt(len(logs))
        low = min(low, math.exp(logs.mean() - reach_of_mean))
        high = max(high, math.exp(logs.mean() + reach_of_mean))
    return Interval(statistics.median(medians), low, high)


def ratio(ones: Sequence[float], others: Sequence[float], sizes: Sequence[int] = ()) -> Interval:
    """How many times the others the ones are, both taken in turns: what disturbed a round disturbed both.

    With fewer than six rounds nothing can be said with this confidence, and the interval is all positive numbers.
    """
    median, low, high = median_interval([a / b for a, b in zip(ones, others, strict=True)], sizes)
    return Interval(median, low, high) if len(ones) >= 6 else Interval(median, 0.0, math.inf)


def of_two_runs(new: Sequence[Sequence[float]], old: Sequence[Sequence[float]]) -> tuple[Interval, float]:
    """The ratio of two medians that were not taken in turns, and the probability that the new one is larger.

    By drawing processes, and of each its rounds, again with replacement (Efron's bootstrap): it knows the noise between rounds, and between
    processes where there are several, and nothing of what changed on the machine between the two runs.

    Parameters
    ----------
    new, old : sequence of sequences of float
        Rounds `by_process`.
    """
    generator = np.random.default_rng(0)

    def drawn(groups: Sequence[Sequence[float]]) -> np.ndarray:
        medians = np.array([np.median(generator.choice(group, (_DRAWS, len(group))), axis=1) for group in groups])
        taken = generator.integers(len(groups), size=medians.shape)
        found: np.ndarray = np.median(np.take_along_axis(medians, taken, axis=0), axis=0)
        return found

    ratios = drawn(new) / drawn(old)
    low, high = np.quantile(ratios, [0.025, 0.975])
    larger = float(np.mean(ratios > 1) + np.mean(ratios == 1) / 2)
    median = statistics.median(map(statistics.median, new)) / statistics.median(map(statistics.median, old))
    return Interval(median, float(low), float(high)), larger


def spread(rounds: Sequence[float], sizes: Sequence[int] = ()) -> float:
    """How noisy rounds are: their interquartile range by their median, or how far a process is from it, whichever is more."""
    if len(rounds) < 2:
        return 0.0
    low, middle, high = np.quantile(np.asarray(rounds, np.float64), [0.25, 0.5, 0.75])
    if middle <= 0:
        return 0.0
    center = median_of(rounds, sizes)
    apart = max(abs(statistics.median(group) / center - 1) for group in by_process(rounds, sizes))
    return max(float((high - low) / middle), apart)
