# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends the command without a traceback while Python still imports: being imported, first of all, sees to it."""

from __future__ import annotations

import os
import signal
import sys

#: The command, as it is installed.
PROGRAM = "onnx-multi-backend"


def is_command() -> bool:
    """Whether this process is the command, and not a program that uses the package."""
    if os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] == PROGRAM:
        return True
    given = sys.orig_argv
    return "-m" in given and given[given.index("-m") + 1 :][:1] == [__name__.partition(".")[0]]


def end_at_once() -> None:
    """Have Ctrl-C end the process as it ends any other, in the command alone; `tell` is what follows."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def tell() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again: from here on, there is somebody to catch it."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


end_at_once()
