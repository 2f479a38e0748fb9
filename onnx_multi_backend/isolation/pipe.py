# SPDX-License-Identifier: Apache-2.0
"""Messages between two processes over a pair of descriptors, one at a time in each direction."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<Q")
_MOST_AT_ONCE = 1 << 20


class Pipe:
    """One end: reads messages from one descriptor, writes them to the other."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes

    def send(self, message: bytes) -> None:
        """Write a message. Raises OSError (BrokenPipeError where nobody reads it any more)."""
        self._write(
            _LENGTH.pack(len(message)) + message if len(message) < _MOST_AT_ONCE else _LENGTH.pack(len(message))
        )
        if len(message) >= _MOST_AT_ONCE:
            self._write(message)

    def receive(self) -> bytes:
        """Wait for a message.

        Raises
        ------
        EOFError
            The other end is closed.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._writes, left) :]

    def _read(self, size: int) -> bytes:
        data = os.read(self._reads, min(size, _MOST_AT_ONCE)) if size else b""
        if len(data) == size:
            return data
        parts = [data]
        size -= len(data)
        while size:
            if not parts[-1]:
                raise EOFError
            parts.append(os.read(self._reads, min(size, _MOST_AT_ONCE)))
            size -= len(parts[-1])
        return b"".join(parts)
