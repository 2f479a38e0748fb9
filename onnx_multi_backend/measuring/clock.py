# SPDX-License-Identifier: Apache-2.0
"""Taking times in turns, so that whatever else the machine does falls on all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Call = Callable[[], object]

#: Seconds until the threads of the engine that ran before spin no more.
SETTLE = 0.02

#: Seconds of calls that are not timed after a pause: an engine's threads, woken together, may share one processor until the scheduler moves
#: one of them, which takes Linux about 25 ms, and runs take two to four times as long until then.
WAKE = 0.03

#: A single call below this is not timed alone: reading the clock would be a part of it.
_WORTH_A_LOOK = 20e-6


def in_turns(
    calls: Mapping[str, Call], *, rounds: int, repeat: int = 1, warm_up: int = 1, settle: bool = False
) -> dict[str, list[float]]:
    """Seconds per call of each, one figure a round; what a call returns is dropped after the clock stopped.

    Parameters
    ----------
    calls : mapping of str to callable
    rounds, repeat : int
        Turns, and calls in each of them.
    warm_up : int
        Calls before the first turn.
    settle : bool
        Whether to let the threads of the one before come to rest before each turn, and to `wake` its own.
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
                time.sleep(SETTLE)
                wake(call, WAKE)
            figures[name].append(seconds_per_call(call, repeat))
    return figures


def seconds_per_call(call: Call, repeat: int) -> float:
    """Seconds that a call takes, the mean of some in a row."""
    started = time.perf_counter_ns()
    for _ in range(repeat):
        result = call()
    took = time.perf_counter_ns() - started
    del result
    return took / repeat / 1e9


def wake(call: Call, seconds: float) -> None:
    """Call, once at least, until so many seconds have passed."""
    end = time.perf_counter() + seconds
    call()
    while time.perf_counter() < end:
        call()


def one_turn(call: Call, seconds: float, *, most: int = 1000) -> list[float]:
    """Call for some time, and return the seconds of each call; of very short calls the mean of a few in a row.

    Parameters
    ----------
    call : callable
    seconds : float
        When the time is up no call is begun. One at least is made.
    most : int
        Figures at most.
    """
    first = seconds_per_call(call, 1)
    repeat = 1 if first >= _WORTH_A_LOOK else max(1, round(_WORTH_A_LOOK / max(first, 1e-7)))
    figures = [first] if repeat == 1 else []
    end = time.perf_counter() + seconds - first
    while not figures or (time.perf_counter() < end and len(figures) < most):
        figures.append(seconds_per_call(call, repeat))
    return figures
