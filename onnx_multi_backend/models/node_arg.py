# SPDX-License-Identifier: Apache-2.0
"""An input or output as ONNX Runtime's sessions describe it."""

from __future__ import annotations

from onnx_multi_backend.models.tensors import TensorInfo


class NodeArg:
    """What ``onnxruntime.NodeArg`` tells of an input or output.

    Parameters
    ----------
    info : TensorInfo
    """

    __slots__ = ("_info",)

    def __init__(self, info: TensorInfo) -> None:
        self._info = info

    @property
    def name(self) -> str:
        """Its name."""
        return self._info.name

    @property
    def type(self) -> str:
        """Its type, for example ``tensor(float)``."""
        return self._info.onnx_type

    @property
    def shape(self) -> list[int | str | None]:
        """A list of its own for each caller; empty for a scalar, an unknown rank and a sequence."""
        return [] if "seq(" in self.type else list(self._info.shape or ())

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"
