# SPDX-License-Identifier: Apache-2.0
"""How far a refused model is looked into: an engine that says no at once is not to be asked about its nodes for a minute."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

#: How many different nodes each way of asking looks at once a node cannot be helped. An engine may take 20 ms to say yes to one.
_MOST = 20

#: An operator's name in ``Node(Add)``, ``Add-23`` or ``Add_10844``.
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass
class Watch:
    """What has been asked of a model, for someone who wants to know everything and can interrupt.

    Attributes
    ----------
    nodes : int
        How many nodes were looked at.
    hopeless : dict of str to None
        The operators that could not be helped, in order.
    tell : callable
        Is called with this for each node.
    """

    tell: Callable[[Watch], None] = lambda watch: None
    nodes: int = 0
    hopeless: dict[str, None] = field(default_factory=dict)


_watched: ContextVar[Watch | None] = ContextVar("watched", default=None)


@contextlib.contextmanager
def unhurried(watch: Watch | None = None) -> Iterator[None]:
    """Ask on as long as there is something to ask."""
    token = _watched.set(watch or Watch())
    try:
        yield
    finally:
        _watched.reset(token)


class Patience:
    """Runs out some nodes after it was clear that a model cannot be helped; before that it lasts.

    Each way of asking starts with hope again, for what is refused in one may be taken in another; it asks first about the
    operators that were hopeless before.

    Attributes
    ----------
    hopeless : set of str
        Operators that could not be helped.
    blamed : frozenset of str
        The words with which the engine refused a rewritten model: the operators among them are asked about first.

    Notes
    -----
    What is counted is nodes, not seconds: whether a model is taken depends neither on the computer's speed nor on what else it does.
    """

    def __init__(self) -> None:
        self.hopeless: set[str] = set()
        self.blamed: frozenset[str] = frozenset()
        self._left: int | None = None

    def renew(self) -> None:
        """Hope again: the model is asked about in another way."""
        self._left = None

    def lose(self, operator: str = "") -> None:
        """Nothing is left to hope for: from now on only some nodes more are looked at."""
        self.hopeless.add(operator)
        if operator and (watch := _watched.get()) is not None:
            watch.hopeless.setdefault(operator)
        if self._left is None:
            self._left = _MOST

    def blame(self, complaint: str) -> None:
        """Note what the engine said of a rewritten model."""
        self.blamed = frozenset(_WORD.findall(complaint))

    def look(self) -> None:
        """Count a node that is looked at."""
        if (watch := _watched.get()) is not None:
            watch.nodes += 1
            watch.tell(watch)
        if self._left is not None:
            self._left -= 1

    def for_explaining(self) -> Patience:
        """A little of its own for finding out which nodes are to blame."""
        fresh = Patience()
        fresh.lose()
        return fresh

    @property
    def lost(self) -> bool:
        """Whether nothing is left to hope for."""
        return self._left is not None

    @property
    def over(self) -> bool:
        """Whether enough was asked."""
        return self._left is not None and self._left <= 0 and _watched.get() is None
