# SPDX-License-Identifier: Apache-2.0
"""A compiled model on OpenVINO."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.request import Port, Request
from onnx_multi_backend.engines.openvino.values import is_packed
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Feeds, Session, Value
from onnx_multi_backend.errors import OptionError, RunError, UnsupportedModelError

_RESULT = "/sink_port_0"
_THREADS, _STREAMS = "INFERENCE_NUM_THREADS", "NUM_STREAMS"

#: Idle requests that are kept at most: more threads than these make and drop theirs.
_KEPT = 32


class PortNames(NamedTuple):
    """By which names of the model each port of a compiled model is known; one port may have several."""

    inputs: list[list[str]]
    outputs: list[list[str]]


def port_names(native: Any, read: Any) -> PortNames:
    """The names as a compiled model has them, and the model that it was compiled from.

    Parameters
    ----------
    native : openvino.CompiledModel
        Out of OpenVINO's own cache it lacks names: of a port that has two, either may be left.
    read : openvino.Model
    """
    inputs = [sorted(names) for names in _together(native.inputs, read.inputs)]
    outputs = [sorted(names) for names in _together(native.outputs, read.outputs)]
    named = {name for names in outputs for name in names}
    for port, names in zip(native.outputs, outputs, strict=True):
        # A graph output that is a graph input too keeps its name here only.
        name = port.node.friendly_name.removesuffix(_RESULT)
        if name not in named:
            names.append(name)
            named.add(name)
    return PortNames(inputs, outputs)


def _together(compiled: Sequence[Any], read: Sequence[Any]) -> Iterator[set[str]]:
    if len(compiled) != len(read):
        yield from (port.names for port in compiled)
        return
    # Where a Cast between two outputs is dropped, one gets the names of both.
    own = {name for port in read for name in port.names}
    for port, known in zip(compiled, read, strict=True):
        yield (port.names - own) | known.names


class OpenvinoSession(Session):
    """Wraps one CompiledModel and a pool of InferRequests, since a request serves one thread at a time.

    Attributes
    ----------
    native : openvino.CompiledModel
    names : PortNames
    """

    spoilable, failures = True, 0

    def __init__(
        self,
        native: Any,
        names: PortNames,
        inputs: frozenset[str],
        outputs: Sequence[tuple[str, np.dtype[Any] | None]],
        placement: Callable[[], tuple[NodePlacement, ...]],
        defaults: frozenset[str] = frozenset(),
        memory: object = None,
    ) -> None:
        self.native = native
        self._memory = memory
        self._find_placement = placement
        self._placement: tuple[NodePlacement, ...] | None = None
        # OpenVINO drops inputs that nothing uses and puts the others in an order of its own.
        self.names = names
        self._inputs = [
            Port(name, i, port.element_type, _fixed_shape(port))
            for i, port in enumerate(native.inputs)
            for name in inputs.intersection(self.names.inputs[i])
        ]
        ports = {name: i for i, own in enumerate(self.names.outputs) for name in own}
        missing = [name for name, _ in outputs if name not in ports]
        if missing:
            raise UnsupportedModelError(f"OpenVINO compiled the model without its outputs {', '.join(missing)}.")
        self._fixed = defaults - {port.name for port in self._inputs}
        self._undefaulted = defaults - self._fixed  # OpenVINO leaves sparse initializers of inputs out
        self._outputs = [
            Port(name, i := ports[name], native.outputs[i].element_type, _fixed_shape(native.outputs[i]), dtype)
            for name, dtype in outputs
        ]
        self._idle: deque[Request] = deque(maxlen=_KEPT)
        self._errors = runtime.all_errors()

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once on an idle request."""
        if run_options:
            raise OptionError(
                f"OpenVINO has no run options; {', '.join(run_options)} given. Set properties in prepare."
            )
        if self._fixed and not self._fixed.isdisjoint(feeds):
            names = ", ".join(sorted(self._fixed & feeds.keys()))
            raise UnsupportedModelError(
                f"OpenVINO fixes inputs with a default ({names}) while it loads a model. Remove their initializers, or "
                "choose an ONNX Runtime preset."
            )
        if self._undefaulted and not feeds.keys() >= self._undefaulted:
            names = ", ".join(sorted(self._undefaulted - feeds.keys()))
            raise UnsupportedModelError(
                f"OpenVINO does not read the sparse initializer that is the default of {names}. Give a value, or choose an "
                "ONNX Runtime preset."
            )
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._request()
        try:
            results = request.run(feeds)
        except self._errors as error:
            self.failures += 1
            raise _run_error(error) from error
        self._idle.append(request)
        return results

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers, with a request of its own."""
        packed = sorted({str(a.dtype) for a in (*inputs.values(), *outputs) if a is not None and is_packed(a.dtype)})
        if packed:
            raise UnsupportedModelError(
                f"OpenVINO packs {', '.join(packed)} as numpy does not, so that they have no buffers in common. Use run."
            )
        request = self._request()
        try:
            request.bind(inputs, outputs)
        except self._errors as error:
            raise _run_error(error) from error
        infer, require_shapes = request.infer, request.require_shapes if request.changes_shapes else None

        def bound() -> None:
            try:
                infer()
            except self._errors as error:
                self.failures += 1
                raise _run_error(error) from error
            if require_shapes is not None:
                require_shapes()

        return bound

    @property
    def in_flight(self) -> int:
        """What OpenVINO says of its streams."""
        return int(self.native.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))

    def _request(self) -> Request:
        try:
            native = self.native.create_infer_request()
        except self._errors as error:
            raise _run_error(error) from error
        return Request(native, self._inputs, self._outputs, loses_errors=self._loses_errors)

    @functools.cached_property
    def serial(self) -> bool:
        """Whether there is one stream."""
        supported = self.native.get_property("SUPPORTED_PROPERTIES")
        return _STREAMS in supported and int(self.native.get_property(_STREAMS)) == 1

    @functools.cached_property
    def _loses_errors(self) -> bool:
        """Whether a run that fails returns what an earlier one made, or nothing.

        Source: measured with 2025.4 and 2026.4. With one thread, `infer` computes in the thread that calls it, and an error while open
        shapes are inferred is lost; `start_async` and `wait` raise it, and take some 15 us more.
        """
        if all(port.shape is not None for port in (*self._inputs, *self._outputs)):
            return False
        supported = self.native.get_property("SUPPORTED_PROPERTIES")
        return _THREADS in supported and int(self.native.get_property(_THREADS)) == 1

    def contradicts_declared_types(self) -> bool:
        """Whether an output comes in another type of numpy's than the model declares, or for numpy's extensions of another size."""
        made = runtime.load().Type

        def differs(kind: Any, dtype: np.dtype[Any] | None) -> bool:
            if dtype is None or dtype == object or is_packed(dtype):
                return False
            return bool(kind != made(dtype) if dtype.isbuiltin == 1 else kind.size != dtype.itemsize)

        return any(differs(self.native.outputs[p.position].element_type, p.dtype) for p in self._outputs)

    def placement(self) -> tuple[NodePlacement, ...]:
        """Every node that was not folded; OpenVINO compiles a model whole or not at all."""
        if self._placement is None:
            self._placement = self._find_placement()
        return self._placement


def _fixed_shape(port: Any) -> tuple[int, ...] | None:
    return tuple(port.shape) if port.partial_shape.is_static else None


def _run_error(error: Exception) -> Exception:
    words = runtime.first_line(error)
    if "Not Implemented" in str(error) or "not implemented" in str(error):
        return UnsupportedModelError(f"OpenVINO cannot run the model on these inputs: {words}")
    return RunError(f"OpenVINO failed while it ran the model: {words}")
