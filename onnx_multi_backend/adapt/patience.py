# SPDX-License-Identifier: Apache-2.0
"""How long a refused model is looked into: an engine that says no at once is not to be asked about its nodes for a minute."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

#: Seconds beyond the engine's own time.
_SPARE = 0.3

_unhurried: ContextVar[bool] = ContextVar("unhurried", default=False)


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """Ask on as long as there is something to ask: for someone who wants to know everything and can interrupt."""
    token = _unhurried.set(True)
    try:
        yield
    finally:
        _unhurried.reset(token)


class Patience:
    """Runs out some time after it was clear that a model cannot be helped; before that it lasts.

    Time is the shorter of wall-clock time and the process's CPU time, so that a busy machine and busy threads cost none.
    """

    def __init__(self) -> None:
        self._engine = 0.0
        self._lost_at: tuple[float, float] | None = None

    @contextlib.contextmanager
    def engine_asked(self) -> Iterator[None]:
        """Count the time inside as the engine's own."""
        started = _now()
        try:
            yield
        finally:
            self._engine += _since(started)

    def lose(self) -> None:
        """Nothing is left to hope for: from now on as much time as the engine took, and a little more, is spent."""
        if self._lost_at is None:
            self._lost_at = _now()

    def for_explaining(self) -> Patience:
        """A little of its own for finding out which nodes are to blame."""
        fresh = Patience()
        fresh.lose()
        return fresh

    @property
    def lost(self) -> bool:
        """Whether nothing is left to hope for."""
        return self._lost_at is not None

    @property
    def over(self) -> bool:
        """Whether enough was asked."""
        if self._lost_at is None or _unhurried.get():
            return False
        return _since(self._lost_at) > self._engine + _SPARE


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _since(then: tuple[float, float]) -> float:
    wall, own = _now()
    return min(wall - then[0], own - then[1])
