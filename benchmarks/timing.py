# SPDX-License-Identifier: Apache-2.0
"""Taking times in turns, so that whatever else the machine does falls on all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Call = Callable[[], object]


def in_turns(
    calls: Mapping[str, Call], *, rounds: int, repeat: int = 1, warm_up: int = 1, settle: float = 0
) -> dict[str, list[float]]:
    """Seconds per call of each, one figure a round; what a call returns is dropped after the clock stopped.

    Parameters
    ----------
    calls : mapping of str to callable
    rounds, repeat : int
        Turns, and calls in each of them.
    warm_up : int
        Calls before the first turn.
    settle : float
        Seconds to wait before each turn, until the threads of the one before spin no more; a call that is not timed
        then wakes its own.
    """
    for call in calls.values():
        for _ in range(warm_up):
            call()
    figures: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for i in range(rounds):
        for name in names if i % 2 == 0 else reversed(names):
            call = calls[name]
            if settle:
                time.sleep(settle)
                call()
            started = time.perf_counter_ns()
            for _ in range(repeat):
                result = call()
            figures[name].append((time.perf_counter_ns() - started) / repeat / 1e9)
            del result
    return figures


def row(measure: str, ours: str, theirs: str, figures: Mapping[str, list[float]], limit: float) -> dict[str, Any]:
    """One line of the report: the ratio of the medians, and what it is made of."""
    medians = {name: statistics.median(figures[name]) for name in (ours, theirs)}
    return {
        "measure": measure,
        "ours": ours,
        "theirs": theirs,
        "ratio": medians[ours] / medians[theirs],
        "limit": limit,
        "unit": "s",
        "ours_median": medians[ours],
        "theirs_median": medians[theirs],
        "ours_quartiles": quartiles(figures[ours]),
        "theirs_quartiles": quartiles(figures[theirs]),
        "rounds": len(figures[ours]),
    }


def quartiles(values: list[float]) -> list[float]:
    """The first and the third."""
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return [low, high]
