# SPDX-License-Identifier: Apache-2.0
"""Sessions of an engine that compiles for fixed shapes: one for each set of input shapes, the last few of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future

from onnx_multi_backend.engines.session import Built

Shapes = Mapping[str, tuple[int, ...]]

#: Sessions that are kept at once; the one unused longest goes first.
KEPT = 4


class SessionsByShape:
    """The sessions compiled for the shapes seen last. Safe from several threads.

    A session is compiled without a lock: runs of other shapes go on meanwhile. Threads that need the same new one wait for
    the first of them.

    Parameters
    ----------
    compile_for : callable
        Makes the session for a set of shapes.
    """

    def __init__(self, compile_for: Callable[[Shapes], Built]) -> None:
        self._compile_for = compile_for
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[tuple[str, tuple[int, ...]], ...], Future[Built]] = OrderedDict()

    def get(self, shapes: Shapes) -> Built:
        """The session for these shapes: a new one where the shapes are new."""
        key = tuple(sorted(shapes.items()))  # a mapping may come in any order
        while True:
            with self._lock:
                session = self._sessions.get(key)
                is_new = session is None
                if session is None:
                    session = self._sessions[key] = Future()
                    while len(self._sessions) > KEPT:
                        self._sessions.popitem(last=False)
                else:
                    self._sessions.move_to_end(key)
            if is_new:
                return self._compile(key, shapes, session)
            try:
                return session.result()
            except CancelledError:
                continue  # the thread that compiled it failed: this one tries too, and gets an error of its own

    def _compile(self, key: tuple[tuple[str, tuple[int, ...]], ...], shapes: Shapes, session: Future[Built]) -> Built:
        made = None
        try:
            made = self._compile_for(shapes)
        finally:
            if made is None:
                with self._lock:
                    if self._sessions.get(key) is session:
                        del self._sessions[key]
                session.cancel()
        session.set_result(made)
        return made
