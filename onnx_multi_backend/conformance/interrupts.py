# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and the SIGTERM with which a CI system stops a job: one of them ends a run, and costs nothing that is known."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def one_interrupt() -> Generator[None]:
    """Have the first SIGINT or SIGTERM raise KeyboardInterrupt in the block, and ignore those that come after it."""

    def interrupt(number: int, frame: Any) -> None:
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    with _handled(interrupt, *_ENDING):
        yield


@contextlib.contextmanager
def uninterrupted(*signals: signal.Signals) -> Generator[None]:
    """Ignore signals in the block, SIGINT and SIGTERM by default; it has to be short."""
    with _handled(signal.SIG_IGN, *(signals or _ENDING)):
        yield


@contextlib.contextmanager
def _handled(handler: Any, *signals: signal.Signals) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python lets no other set a handler
        yield
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
