# SPDX-License-Identifier: Apache-2.0
"""What a worker's backend prints goes to a file, whatever the backend does to its streams."""

from __future__ import annotations

import contextlib
import io
import os
import sys


class Output:
    """The file, with a descriptor that no backend knows of.

    Attributes
    ----------
    file : int
    """

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.renew()

    def renew(self) -> None:
        """Forget what was printed, and make the streams anew: the last case may have closed or replaced them."""
        for number, name in ((1, "stdout"), (2, "stderr")):
            with contextlib.suppress(Exception):  # what stands there may be a foreign backend's own
                getattr(sys, name).flush()
            os.dup2(self.file, number)
            binary = io.FileIO(number, "w", closefd=False)
            text = io.TextIOWrapper(io.BufferedWriter(binary), "utf-8", "backslashreplace", line_buffering=True)
            setattr(sys, name, text)
        os.ftruncate(self.file, 0)
