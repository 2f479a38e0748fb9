# SPDX-License-Identifier: Apache-2.0
"""Whether a file is still the one it was, without reading it.

A time of change can be set back, and a file can be written again within one tick of the file system's clock. So the
stamp also has the inode and the time of the inode's change, which nobody can set, and a stamp younger than a tick is not
relied on, as git does with its index (https://git-scm.com/docs/racy-git).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

#: A file that was touched this recently may be written again without a trace. FAT's clock ticks every 2 s.
_TICK_NS = 2_500_000_000

#: Windows keeps the time of creation where POSIX keeps that of the last change of the inode.
_TELLS_CHANGES = sys.platform != "win32"


class Stamp(NamedTuple):
    """What the file system says of a file."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, file: Path) -> Stamp:
        """The stamp of a file, or of what a symbolic link leads to. Raises OSError."""
        return cls.of_status(file.stat())

    @classmethod
    def of_status(cls, status: os.stat_result) -> Stamp:
        """The stamp of what the system told of a file."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)

    def is_settled(self) -> bool:
        """Whether the same stamp, seen later, will prove that nobody wrote the file since now."""
        return _TELLS_CHANGES and max(self.mtime_ns, self.ctime_ns) + _TICK_NS < time.time_ns()
