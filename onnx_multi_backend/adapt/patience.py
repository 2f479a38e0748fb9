# SPDX-License-Identifier: Apache-2.0
"""How far a refused model is looked into: a model that an engine refuses at once is not to be examined node by node for a minute."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

#: How many different nodes each way of querying examines once a node cannot be rewritten. An engine may take 20 ms to take one.
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
        The operators that could not be rewritten, in order.
    tell : callable
        Is called with this for each node.
    """

    tell: Callable[[Watch], None] = lambda watch: None
    nodes: int = 0
    hopeless: dict[str, None] = field(default_factory=dict)


_watched: ContextVar[Watch | None] = ContextVar("watched", default=None)


@contextlib.contextmanager
def unhurried(watch: Watch | None = None) -> Iterator[None]:
    """Examine all nodes, without the limit."""
    token = _watched.set(watch or Watch())
    try:
        yield
    finally:
        _watched.reset(token)


class Patience:
    """A limit on the nodes that are examined, which counts from when a node cannot be rewritten.

    Each way of querying starts without a limit again, because what is refused in one may be taken in another; it begins with the
    operators that could not be rewritten before.

    Attributes
    ----------
    hopeless : set of str
        Operators that could not be rewritten.
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
        """Lift the limit: the model is examined in another way."""
        self._left = None

    def lose(self, operator: str = "") -> None:
        """A node cannot be rewritten: from now on only some nodes more are examined."""
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
        """A limit of its own for finding out which nodes are to blame."""
        fresh = Patience()
        fresh.lose()
        return fresh

    @property
    def lost(self) -> bool:
        """Whether some node cannot be rewritten."""
        return self._left is not None

    @property
    def over(self) -> bool:
        """Whether the limit is reached."""
        return self._left is not None and self._left <= 0 and _watched.get() is None
