# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, a CI system's SIGTERM, a closed terminal's SIGHUP: one of them ends a run, and costs nothing that is known."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Generator
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@contextlib.contextmanager
def one_interrupt() -> Generator[None]:
    """Have the first signal that ends a run raise KeyboardInterrupt in the block, and ignore those that come after it.

    A SIGHUP that is ignored, as under nohup, stays so.
    """

    def interrupt(number: int, frame: Any) -> None:
        for ending in _ENDING:
            signal.signal(ending, signal.SIG_IGN)
        if number not in _ENDING[:2]:
            _leave_terminal()
        raise KeyboardInterrupt

    nohup = [number for number in _ENDING[2:] if signal.getsignal(number) == signal.SIG_IGN]
    with _handled(interrupt, *(number for number in _ENDING if number not in nohup)):
        yield


def _leave_terminal() -> None:
    """Send what would be written to a terminal nowhere: it is closed, and writing would fail before the reports are written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # it was closed before
            if stat.S_ISCHR(os.fstat(stream).st_mode):
                os.dup2(nowhere, stream)
    os.close(nowhere)


@contextlib.contextmanager
def uninterrupted(*signals: signal.Signals) -> Generator[None]:
    """Ignore signals in the block, those that end a run by default; it has to be short."""
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
