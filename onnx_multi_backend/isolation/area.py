# SPDX-License-Identifier: Apache-2.0
"""Memory that two processes see. It has no name, so that nothing is left behind, however either of them ends."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Each array begins where a cache line does, which is what engines want.
_ALIGNMENT = 64


class Area:
    """One process's view of the memory behind a descriptor.

    Parameters
    ----------
    descriptor : int
        From `make`, in this process or in the one that handed it on.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = 0
        self._map: mmap.mmap | None = None

    def reserve(self, size: int) -> None:
        """Make it at least so large. Arrays made before stay where they are, and are not this memory's any more.

        Raises
        ------
        OSError
            There is not as much memory.
        """
        if size <= self._size:
            return
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        if hasattr(os, "posix_fallocate"):  # without it, memory that is not there ends the process when it is written
            os.posix_fallocate(self._descriptor, 0, whole)
        else:
            os.ftruncate(self._descriptor, whole)
        self._look(whole)

    def follow(self, size: int) -> None:
        """See at least as much: the other process has made it so large."""
        if size > self._size:
            self._look(os.fstat(self._descriptor).st_size)

    def array(self, offset: int, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The array at a place."""
        if 0 in shape or self._map is None:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, buffer=self._map, offset=offset)

    def close(self) -> None:
        """Let go of it; arrays keep what they see."""
        self._map = None
        os.close(self._descriptor)

    def _look(self, size: int) -> None:
        self._map = mmap.mmap(self._descriptor, size)
        self._size = size


def make() -> int:
    """The descriptor of new memory."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("onnx_multi_backend")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def places(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[int], int]:
    """Where arrays lie one after another, and how much they take together."""
    offsets, end = [], 0
    for array in arrays:
        offsets.append(end)
        end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return offsets, end
