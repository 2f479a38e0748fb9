# SPDX-License-Identifier: Apache-2.0
"""Messages between two processes over a pair of descriptors, one at a time in each direction."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<Q")
_MOST_AT_ONCE = 1 << 16


class Pipe:
    """One end: reads messages from one descriptor, writes them to the other."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._ahead = b""  # what a read brought of the next message

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
        data = self._ahead or self._some()
        while len(data) < _LENGTH.size:
            data += self._some()
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + length
        if len(data) < end:
            parts, missing = [data], end - len(data)
            while missing > 0:
                parts.append(self._some())
                missing -= len(parts[-1])
            data = b"".join(parts)
        self._ahead = data[end:]
        return data[_LENGTH.size : end]

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._writes, left) :]

    def _some(self) -> bytes:
        data = os.read(self._reads, _MOST_AT_ONCE)
        if not data:
            raise EOFError
        return data
