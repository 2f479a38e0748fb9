# SPDX-License-Identifier: Apache-2.0
"""One InferRequest, made ready once and used for many runs by one thread at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnx_multi_backend.engines.openvino.values import is_plain, to_array, to_tensor
from onnx_multi_backend.engines.session import Feeds, Value
from onnx_multi_backend.errors import RunError

#: A fixed input of up to this many bytes is copied into a tensor of the request's own: that is faster than making a
#: tensor around the caller's array. A larger one is shared with the caller for the time of the run.
_COPIED = 64 * 1024


class Port(NamedTuple):
    """An input or output of the compiled model.

    Attributes
    ----------
    name : str
        The model's own name.
    position : int
        OpenVINO's.
    element_type : openvino.Type
    shape : tuple of int or None
        None where it is not fixed.
    dtype : numpy.dtype or None
        As the model declares it; of outputs only.
    """

    name: str
    position: int
    element_type: Any
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any] | None = None


class Request:
    """A persistent InferRequest.

    Parameters
    ----------
    native : openvino.InferRequest
    inputs, outputs : sequence of Port
    loses_errors : bool
        Whether `infer` may return what an earlier run made, where it should raise.
    """

    __slots__ = ("_alive", "_copied", "_infer", "_inputs", "_moving", "_outputs", "_results", "native")

    def __init__(
        self, native: Any, inputs: Sequence[Port], outputs: Sequence[Port], *, loses_errors: bool = False
    ) -> None:
        self.native = native
        # The native method: the Python method around it would look at inputs, and here are none left. Its results
        # share the tensors' memory, where they can, and are dropped.
        shares = all(is_plain(port.element_type) for port in outputs)
        self._infer: Callable[[], object] = functools.partial(super(type(native), native).infer, {}, shares, False)  # type: ignore[misc]
        if loses_errors:
            start, wait = functools.partial(super(type(native), native).start_async, {}, None), native.wait  # type: ignore[misc]

            def infer() -> None:
                start()
                wait()

            self._infer = infer
        self._inputs = inputs
        self._outputs = outputs
        views = [(port.name, self._view(port)) for port in inputs]
        #: Where every input is copied: its name, the memory that it is copied to, with its shape and dtype.
        self._copied = [(name, view, view.shape, view.dtype) for name, view in views if view is not None]
        if len(self._copied) < len(inputs):
            self._copied = []
        #: Where the memory of no output ever moves: what copies it.
        contents = [_content(native.get_output_tensor(p.position), p) for p in outputs]
        self._results = [c.copy for c in contents if c is not None] if all(c is not None for c in contents) else None

    def _view(self, port: Port) -> np.ndarray[Any, Any] | None:
        if port.shape is None or not is_plain(port.element_type):
            return None
        tensor = self.native.get_input_tensor(port.position)
        return tensor.data if 0 < tensor.byte_size <= _COPIED else None

    def run(self, feeds: Feeds) -> list[Value]:
        """Run once; the results are the caller's own."""
        for name, view, shape, dtype in self._copied:
            value = feeds[name]
            if value.shape != shape or value.dtype is not dtype:
                raise TypeError(
                    f"OpenVINO takes {name!r} as {dtype}{list(shape)}, not {value.dtype}{list(value.shape)}."
                )
            view[...] = value
        if self._copied:
            self._infer()
        else:
            self._share(feeds)
        if self._results is not None:
            return [copy() for copy in self._results]
        return [to_array(self.native.get_output_tensor(p.position), p.dtype) for p in self._outputs]

    def _share(self, feeds: Feeds) -> None:
        alive = []  # the memory behind the tensors
        for port in self._inputs:
            tensor, memory = to_tensor(feeds[port.name], port.element_type)
            alive.append(memory)
            self.native.set_input_tensor(port.position, tensor)
        self._infer()

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> None:
        """Read from and write to these arrays from now on.

        Parameters
        ----------
        outputs : sequence of numpy.ndarray
            One an output, in the order of the outputs; None for one that stays in the request's own memory.
        """
        self._alive = (inputs, outputs)
        for port in self._inputs:
            self.native.set_input_tensor(port.position, to_tensor(inputs[port.name], port.element_type)[0])
        self._moving = []
        for array, port in zip(outputs, self._outputs, strict=True):
            if array is None:
                continue
            self.native.set_output_tensor(port.position, to_tensor(array, port.element_type)[0])
            if port.shape is None:
                self._moving.append((port, array.shape))

    @property
    def changes_shapes(self) -> bool:
        """Whether a bound output may come in another shape than its buffer's."""
        return bool(self._moving)

    def require_shapes(self) -> None:
        """Hold the outputs of the last run to their buffers: OpenVINO writes smaller ones without a word.

        Raises
        ------
        RunError
        """
        for port, shape in self._moving:
            made = tuple(self.native.get_output_tensor(port.position).shape)
            if made != shape:
                raise RunError(
                    f"Output {port.name!r} has shape {made} now, and its buffer has {shape}. Bind again, or use run."
                )

    @property
    def infer(self) -> Callable[[], object]:
        """Runs once on what is bound."""
        return self._infer


def _content(tensor: Any, port: Port) -> np.ndarray[Any, Any] | None:
    """The memory of an output whose place never changes."""
    if port.shape is None or 0 in port.shape or not is_plain(port.element_type, port.dtype):
        return None
    return tensor.data  # type: ignore[no-any-return]
