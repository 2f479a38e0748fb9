# SPDX-License-Identifier: Apache-2.0
"""Opening files that anyone may have put into a cache's folder: whoever opens a pipe waits for its other end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotRegularError(OSError):
    """It is a pipe, a device or a folder."""


def open_regular(file: Path) -> BinaryIO:
    """Open a file for reading, without waiting.

    Raises
    ------
    NotRegularError
    OSError
    """
    descriptor = os.open(file, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(errno.EINVAL, "it is not a regular file", str(file))
    return os.fdopen(descriptor, "rb")
