# SPDX-License-Identifier: Apache-2.0
"""Sessions of an engine that compiles for fixed shapes: one for each set of input shapes, the last few of them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import numpy as np

from onnx_multi_backend.engines.session import Built, Feeds
from onnx_multi_backend.sessions.known_inputs import NO_VALUES, Shapes, Values

_Key = tuple[tuple[tuple[str, tuple[int, ...]], ...], tuple[tuple[str, int], ...]]

#: Sessions that are kept at once; the one unused longest goes first.
KEPT = 4


class SessionsByShape:
    """The sessions compiled for the shapes seen last. Safe from several threads.

    A session is compiled without a lock: runs of other shapes go on meanwhile. Threads that need the same new one wait for
    the first of them, and get its error where it fails; a later run tries again.

    Parameters
    ----------
    compile_for : callable
        Makes the session for a set of shapes, and for the values that `get` is given with them.
    """

    def __init__(self, compile_for: Callable[..., Built]) -> None:
        self._compile_for = compile_for
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, Built] = OrderedDict()
        self._compiling: dict[_Key, Future[Built]] = {}

    def for_feeds(self, feeds: Feeds) -> Built:
        """The session for the shapes of these inputs."""
        return self.get(shapes_of(feeds))

    def binder(self, session: Any, feeds: Feeds) -> Any:
        """What binds the session for these inputs."""
        return session

    def get(self, shapes: Shapes, values: Values = NO_VALUES) -> Built:
        """The session for these shapes, and values: a new one where they are new."""
        key = tuple(sorted(shapes.items())), tuple(sorted(values.items()))  # a mapping may come in any order
        while True:
            with self._lock:
                if (built := self._kept.get(key)) is not None:
                    self._kept.move_to_end(key)
                    return built
            mine: Future[Built] = Future()
            try:
                with self._lock:
                    if key in self._kept:  # meanwhile, by another thread
                        continue
                    compiling = self._compiling.setdefault(key, mine)
                if compiling is mine:
                    return self._compile(key, mine)
            finally:  # a Ctrl-C anywhere above must not leave others waiting
                with self._lock:
                    if self._compiling.get(key) is mine:
                        del self._compiling[key]
                mine.cancel()
            try:
                return compiling.result()
            except CancelledError:
                continue  # the thread that compiled it was interrupted: this one goes on

    def _compile(self, key: _Key, mine: Future[Built]) -> Built:
        try:
            shapes, values = map(dict, key)
            built = self._compile_for(shapes, values) if values else self._compile_for(shapes)
        except Exception as error:  # whatever it is, it is raised here and in every thread that waits
            mine.set_exception(error)
            raise
        with self._lock:
            self._kept[key] = built
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        mine.set_result(built)
        return built


def shapes_of(feeds: Feeds) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs that are arrays."""
    return {name: value.shape for name, value in feeds.items() if isinstance(value, np.ndarray)}


def logged(compile_for: Callable[..., Built], who: str) -> Callable[..., Built]:
    """The same, with a line in the log for each compilation and its cost; `who` begins it."""
    import logging

    logger = logging.getLogger("onnx_multi_backend")

    def compile_and_log(shapes: Shapes, *values: Values) -> Built:
        started = time.perf_counter_ns()
        built = compile_for(shapes, *values)
        told = "".join(f" and values {some}" for some in values)
        logger.info("%s for shapes %s%s in %.0f ms", who, shapes, told, (time.perf_counter_ns() - started) / 1e6)
        return built

    return compile_and_log
