# SPDX-License-Identifier: Apache-2.0
"""Small models of fixed shapes: copied into and out of memory that is bound once, a call costs half."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx_multi_backend.engines.ort.binding import Binding
from onnx_multi_backend.engines.ort.values import declared_shape, exotic_type
from onnx_multi_backend.engines.session import Feeds, Value
from onnx_multi_backend.models.tensors import OBJECT, numpy_dtype, type_from_string

#: Inputs of up to this many bytes are copied; sharing the caller's memory is faster for larger ones.
_COPIED = 64 * 1024

_ARRAY = np.ndarray


class Buffered:
    """A binding to buffers of its own, for one thread at a time.

    Parameters
    ----------
    native : onnxruntime.InferenceSession
    results : sequence of numpy.ndarray
        Arrays of the shapes and dtypes that a run returns.
    """

    __slots__ = ("_count", "_inputs", "_outputs", "_run")

    def __init__(self, native: Any, results: Sequence[Value]) -> None:
        inputs = input_buffers(native) or {}
        buffers = [np.empty_like(value, order="C") for value in results]
        names = [output.name for output in native.get_outputs()]
        self._run = Binding(native, inputs, dict(zip(names, buffers, strict=True))).call
        self._inputs = [(name, buffer, buffer.shape, buffer.dtype) for name, buffer in inputs.items()]
        self._count = len(inputs)
        self._outputs = [buffer.copy for buffer in buffers]

    def run(self, feeds: Feeds) -> list[Value] | None:
        """Run once; the results are the caller's own. None, and nothing was run, where other inputs were given."""
        if len(feeds) != self._count:
            return None
        for name, buffer, shape, dtype in self._inputs:
            value = feeds[name]
            if type(value) is not _ARRAY or value.shape != shape or value.dtype is not dtype:
                return None
            buffer[...] = value
        self._run()
        if len(self._outputs) == 1:  # a comprehension costs more than one copy
            return [self._outputs[0]()]
        return [copy() for copy in self._outputs]


def input_buffers(native: Any) -> dict[str, np.ndarray[Any, Any]] | None:
    """Buffers for the inputs of a session on the CPU, where all are small tensors of numbers and fixed shapes."""
    if native.get_providers() != ["CPUExecutionProvider"] or not native.get_inputs():
        return None
    made: dict[str, np.ndarray[Any, Any]] = {}
    for info in native.get_inputs():
        kind = None if exotic_type(info.type) is not None else type_from_string(info.type, [])
        shape = declared_shape(info)
        if kind is None or shape is None:
            return None
        sizes = [d for d in shape if isinstance(d, int) and d > 0]
        if len(sizes) < len(shape):
            return None
        dtype = numpy_dtype(kind.tensor_type.elem_type)
        if dtype == OBJECT or math.prod(sizes) * dtype.itemsize > _COPIED:
            return None
        made[info.name] = np.empty(sizes, dtype)
    return made


def can_buffer(results: Sequence[Value]) -> bool:
    """Whether results fit into buffers: arrays of numbers, none of them empty or large."""
    return all(
        isinstance(value, np.ndarray) and value.dtype != OBJECT and 0 < value.nbytes <= _COPIED for value in results
    )
