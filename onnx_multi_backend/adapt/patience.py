# SPDX-License-Identifier: Apache-2.0
"""How long a refused model is looked into: an engine that says no at once is not to be asked about its nodes for a minute."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

#: Seconds beyond the engine's own time, and the least that each way of asking gets.
_SPARE, _LEAST = 0.2, 0.05

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

    Each way of asking starts with hope again, for what is refused in one may be taken in another; it asks first about the
    operators that were hopeless before, and all of them together spend the same time.

    Attributes
    ----------
    hopeless : set of str
        Operators that could not be helped.

    Notes
    -----
    Time is the shorter of wall-clock time and the process's CPU time, so that a busy machine and busy threads cost none.
    """

    def __init__(self) -> None:
        self.hopeless: set[str] = set()
        self._engine = 0.0
        self._spent = 0.0
        self._lost_at: tuple[float, float] | None = None

    @contextlib.contextmanager
    def engine_asked(self) -> Iterator[None]:
        """Count the time inside as the engine's own."""
        started = _now()
        try:
            yield
        finally:
            self._engine += _since(started)

    def renew(self) -> None:
        """Hope again: the model is asked about in another way."""
        if self._lost_at is not None:
            self._spent += _since(self._lost_at)
            self._lost_at = None

    def lose(self, operator: str = "") -> None:
        """Nothing is left to hope for: from now on as much time as the engine took, and a little more, is spent."""
        self.hopeless.add(operator)
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
        return _since(self._lost_at) > max(_LEAST, self._engine + _SPARE - self._spent)


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _since(then: tuple[float, float]) -> float:
    wall, own = _now()
    return min(wall - then[0], own - then[1])
