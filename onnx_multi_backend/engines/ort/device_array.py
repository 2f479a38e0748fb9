# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of a device, exchanged through DLPack without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_multi_backend.engines.ort import errors
from onnx_multi_backend.engines.ort.native import dlpack_of, value_from_dlpack
from onnx_multi_backend.engines.ort.values import exotic_type
from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.tensors import numpy_dtype, type_from_string

#: DLPack's numbers for devices. Source: dlpack.h, ``DLDeviceType``.
_DEVICES = {1: "CPU", 2: "CUDA", 3: "CPU"}


class DeviceArray:
    """A tensor that ONNX Runtime holds, where it lies.

    Speaks DLPack: ``torch.from_dlpack(x)``, ``cupy.from_dlpack(x)``, and ``numpy.from_dlpack(x)`` for one on the CPU.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    __slots__ = ("_owner", "dtype", "native", "shape")

    def __init__(self, native: Any, owner: Any = None) -> None:
        #: ONNX Runtime's OrtValue.
        self.native = native
        self._owner = owner
        self.shape = tuple(native.shape())
        kind = exotic_type(native.data_type())
        if kind is None:
            proto = type_from_string(native.data_type(), [])
            kind = proto.tensor_type.elem_type if proto is not None else 0
        self.dtype: np.dtype[Any] = numpy_dtype(kind)

    @classmethod
    def from_device(cls, value: Any) -> DeviceArray:
        """The tensor behind anything that supports DLPack; its memory is shared.

        Raises
        ------
        InputError
            ONNX Runtime cannot take it: not contiguous, or of a type that it does not read from DLPack.
        """
        refusals: tuple[type[Exception], ...] = (*errors.all_errors(), BufferError, TypeError, ValueError)
        boolean = "bool" in str(getattr(value, "dtype", ""))
        try:
            return cls(value_from_dlpack(value, boolean=boolean), value)
        except refusals as error:
            raise InputError(
                f"ONNX Runtime cannot read this {type(value).__name__} through DLPack: {errors.first_line(error)}. Make it "
                "contiguous, or copy it to the CPU."
            ) from error

    @property
    def device(self) -> str:
        """Where it lies, for example ``CUDA:0`` or ``CPU``."""
        kind, index = self.__dlpack_device__()
        return f"{_DEVICES.get(kind, kind)}:{index}" if _DEVICES.get(kind) != "CPU" else "CPU"

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in the host's memory."""
        return np.array(self.native.numpy())

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = dlpack_of(self.native).__dlpack_device__()
        return int(kind), int(index)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("A DeviceArray is exchanged where it lies. Copy it with numpy(), or in your library.")
        return dlpack_of(self.native).__dlpack__(stream=stream)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype}{list(self.shape)} on {self.device}>"


def lies_on_a_device(value: Any) -> bool:
    """Whether something supports DLPack and lies where numpy cannot read it."""
    ask = getattr(value, "__dlpack_device__", None)
    return ask is not None and _DEVICES.get(ask()[0]) != "CPU"
