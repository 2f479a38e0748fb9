# SPDX-License-Identifier: Apache-2.0
"""A CI system stops a job with SIGTERM, and wants what is known by then."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator


@contextlib.contextmanager
def termination_as_interrupt() -> Generator[None]:
    """Have SIGTERM raise KeyboardInterrupt in the block, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # Python lets no other set a handler
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
