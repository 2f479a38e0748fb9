# SPDX-License-Identifier: Apache-2.0
"""One input of a graph: what it must be, and how the engine wants it."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_multi_backend.models.tensors import OBJECT, TensorInfo


class Slot:
    """One graph input: what it must be, and how the engine wants it.

    Parameters
    ----------
    info : TensorInfo
        As the user's model declares it.
    engine_name : str
        The engine's name for it.
    engine_dtype : numpy.dtype or None
        The dtype that the engine takes instead of the declared one, or None when it is the same.
    """

    __slots__ = ("dtype", "engine_dtype", "engine_name", "exact", "fast", "fixed", "info", "kind", "name", "rank")

    def __init__(self, info: TensorInfo, engine_name: str, engine_dtype: np.dtype[Any] | None) -> None:
        self.info = info
        self.name = info.name
        self.engine_name = engine_name
        self.engine_dtype = engine_dtype
        self.dtype = info.dtype
        self.kind = info.onnx_type.partition("(")[0]
        self.rank = -1 if info.shape is None else len(info.shape)
        self.fixed = tuple((i, d) for i, d in enumerate(info.shape or ()) if isinstance(d, int))
        #: The one shape that fits, where every dimension is fixed.
        self.exact = info.shape if len(self.fixed) == self.rank else None
        #: Whether an ndarray of the right dtype and shape can go to the engine as it is.
        self.fast = self.kind == "tensor" and engine_dtype is None and self.dtype is not None and self.dtype != OBJECT

    def shape_fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape has the declared rank and the declared fixed dimensions."""
        if shape == self.exact:
            return True
        if self.rank != len(shape):
            return self.rank < 0
        for axis, size in self.fixed:
            if shape[axis] != size:
                return False
        return True
