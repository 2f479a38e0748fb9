# SPDX-License-Identifier: Apache-2.0
"""Running on fixed memory: ONNX Runtime's IOBinding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnx_multi_backend.engines.ort.device_array import DeviceArray
from onnx_multi_backend.engines.ort.native import bound_run_of
from onnx_multi_backend.engines.ort.records import record
from onnx_multi_backend.engines.ort.values import declared_shape
from onnx_multi_backend.errors import RunError
from onnx_multi_backend.host.devices import Device


class Binding:
    """Inputs and outputs of a session at fixed places.

    Parameters
    ----------
    native : onnxruntime.InferenceSession
    inputs : mapping of str to numpy.ndarray or DeviceArray
    outputs : mapping of str to numpy.ndarray, DeviceArray or Device
        A device where ONNX Runtime is to make room itself.
    options : onnxruntime.RunOptions, optional
        Of every run that is given none.
    """

    def __init__(self, native: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any], options: Any = None) -> None:
        self._options = options
        self._io = native.io_binding()
        self._run = bound_run_of(native, self._io)
        self._alive = (native, dict(inputs), dict(outputs))
        for name, value in inputs.items():
            self._bind_input(name, value)
        declared = {output.name: declared_shape(output) for output in native.get_outputs()}
        self._copied: list[tuple[int, str, np.ndarray[Any, Any]]] = []
        for place, (name, value) in enumerate(outputs.items()):
            if isinstance(value, Device):
                self._io.bind_output(name, value.kind.lower(), value.index)
            elif isinstance(value, np.ndarray) and _is_wrong(declared.get(name) or [], value.shape):
                self._io.bind_output(name)  # ONNX Runtime refuses a buffer that the model does not declare so
                self._copied.append((place, name, value))
            elif isinstance(value, DeviceArray):
                self._io.bind_ortvalue_output(name, value.native)
            else:
                self._io.bind_output(name, "cpu", 0, value.dtype.type, list(value.shape), value.ctypes.data)
        known = record(native.get_providers()[0])
        elsewhere = known.on_cuda or known.copies_bound_inputs  # of host memory it takes a copy when that is bound
        self._again = [(n, v) for n, v in inputs.items() if elsewhere and isinstance(v, np.ndarray)]

    def _bind_input(self, name: str, value: Any) -> None:
        if isinstance(value, DeviceArray):
            self._io.bind_ortvalue_input(name, value.native)
        else:
            self._io.bind_input(name, "cpu", 0, value.dtype.type, list(value.shape), value.ctypes.data)

    @property
    def call(self) -> Callable[[], None]:
        """The fastest way to `run` again and again."""
        return self.run if self._again or self._copied else functools.partial(self._run, self._options)

    def run(self, options: Any = None) -> None:
        """Run once."""
        for name, value in self._again:
            self._bind_input(name, value)
        for _, name, _ in self._copied:  # what the last run made would be written into again
            self._io.bind_output(name)
        self._run(options or self._options)
        made = self._io.get_outputs() if self._copied else ()
        for place, name, buffer in self._copied:
            result = made[place].numpy()
            if result.shape != buffer.shape:
                raise RunError(
                    f"Output {name!r} has shape {result.shape} by now, and its buffer {buffer.shape}. Bind again, or use run."
                )
            buffer[...] = result

    def results(self) -> Sequence[DeviceArray]:
        """The outputs of the last run, where they lie."""
        return [DeviceArray(value) for value in self._io.get_outputs()]


def _is_wrong(declared: Sequence[Any], shape: Sequence[int]) -> bool:
    """Whether a model declares an output otherwise than it comes out; an empty list does not declare a rank."""
    if not declared:
        return False
    return len(declared) != len(shape) or any(
        isinstance(size, int) and size != made for size, made in zip(declared, shape, strict=True)
    )
