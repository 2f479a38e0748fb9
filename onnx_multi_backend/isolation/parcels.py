# SPDX-License-Identifier: Apache-2.0
"""Values on their way to another process: arrays of numbers through shared memory, anything else pickled.

What was written for values of some dtypes and shapes serves again for the next ones of the same: then only the arrays'
content moves.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx_multi_backend.isolation.area import Area, places

_ARRAY = np.ndarray


def _goes_by_memory(value: Any) -> bool:
    return type(value) is _ARRAY and not value.dtype.hasobject


class Outbox:
    """Puts values into memory, and writes what the other side needs to find them.

    Parameters
    ----------
    area : Area or None
        None where processes share no memory: then everything is pickled.
    """

    def __init__(self, area: Area | None) -> None:
        self._area = area
        self._kinds: list[tuple[Any, ...]] | None = None
        self._views: list[np.ndarray[Any, Any]] = []
        self._told = b""

    def put(self, names: Sequence[str], values: Sequence[Any]) -> bytes:
        """Put named values.

        Raises
        ------
        OSError
            There is not as much memory.
        """
        if self._area is None or not all(map(_goes_by_memory, values)):
            return self._mixed(names, values)
        kinds = [(name, v.dtype, v.shape) for name, v in zip(names, values, strict=True)]
        if kinds != self._kinds:
            self._views, self._told = self._lay_out(names, values)
            self._kinds = kinds
        for view, value in zip(self._views, values, strict=True):
            view[...] = value
        return self._told

    def _mixed(self, names: Sequence[str], values: Sequence[Any]) -> bytes:
        self._kinds = None
        through = [v for v in values if self._area is not None and _goes_by_memory(v)]
        views, told = self._lay_out(names, through, values)
        for view, value in zip(views, through, strict=True):
            view[...] = value
        return told

    def _lay_out(
        self, names: Sequence[str], arrays: Sequence[np.ndarray[Any, Any]], values: Sequence[Any] | None = None
    ) -> tuple[list[np.ndarray[Any, Any]], bytes]:
        offsets, size = places(arrays)
        views: list[np.ndarray[Any, Any]] = []
        if self._area is not None:
            self._area.reserve(size)
            views = [self._area.array(o, a.dtype, a.shape) for o, a in zip(offsets, arrays, strict=True)]
        where = iter(offsets)
        parts: list[tuple[Any, ...]] = []
        for name, value in zip(names, arrays if values is None else values, strict=True):
            if self._area is not None and _goes_by_memory(value):
                parts.append((name, next(where), value.dtype, value.shape))
            else:
                parts.append((name, value))
        return views, pickle.dumps((size, parts), protocol=pickle.HIGHEST_PROTOCOL)


class Inbox:
    """Finds what an `Outbox` put. The arrays are the shared memory itself: copy what must outlive the next."""

    def __init__(self, area: Area | None) -> None:
        self._area = area
        self._told = b""
        self._found: dict[str, Any] = {}
        self._values: list[Any] = []

    def get(self, told: bytes) -> list[Any]:
        """The values in their order."""
        if told != self._told:
            size, parts = pickle.loads(told)
            if self._area is not None:
                self._area.follow(size)
            self._values = [self._one(part) for part in parts]
            self._found = {part[0]: value for part, value in zip(parts, self._values, strict=True)}
            self._told = told if all(len(part) > 2 for part in parts) else b""  # what is pickled is new each time
        return self._values

    def named(self, told: bytes) -> dict[str, Any]:
        """The values by name."""
        self.get(told)
        return self._found

    def _one(self, part: tuple[Any, ...]) -> Any:
        if len(part) == 2:
            return part[1]
        assert self._area is not None
        _, offset, dtype, shape = part
        return self._area.array(offset, dtype, shape)
