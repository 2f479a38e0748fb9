# SPDX-License-Identifier: Apache-2.0
"""A compiled model on OpenVINO."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.values import to_array, to_tensor
from onnx_multi_backend.engines.session import Feeds, Value
from onnx_multi_backend.errors import OptionError, RunError, UnsupportedModelError
from onnx_multi_backend.placement import NodePlacement

_RESULT = "/sink_port_0"


class OpenvinoSession:
    """Wraps one CompiledModel and a pool of InferRequests, since a request serves one thread at a time.

    Attributes
    ----------
    native : openvino.CompiledModel
    adaptations : tuple of Adaptation
        What was changed in the model while it was compiled.
    memory : object
        What the compiled model's weights lie in, where that is not OpenVINO's own.
    """

    def __init__(
        self,
        native: Any,
        outputs: Sequence[tuple[str, np.dtype[Any] | None]],
        placement: tuple[NodePlacement, ...],
        adaptations: tuple[Adaptation, ...] = (),
        defaults: frozenset[str] = frozenset(),
    ) -> None:
        self.native = native
        self.adaptations = adaptations
        self.memory: object = None
        self._placement = placement
        # OpenVINO drops inputs that nothing uses and puts the others in an order of its own.
        self._inputs = [(name, i, port.element_type) for i, port in enumerate(native.inputs) for name in port.names]
        ports = {name: i for i, port in enumerate(native.outputs) for name in port.names}
        for i, port in enumerate(native.outputs):  # a graph output that is a graph input too keeps its name here only
            ports.setdefault(port.node.friendly_name.removesuffix(_RESULT), i)
        missing = [name for name, _ in outputs if name not in ports]
        if missing:
            raise UnsupportedModelError(f"OpenVINO compiled the model without its outputs {', '.join(missing)}.")
        self._fixed = defaults - {name for name, _, _ in self._inputs}
        self._outputs = [(ports[name], dtype) for name, dtype in outputs]
        self._idle: deque[Any] = deque()
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
        try:
            request = self._idle.popleft()
        except IndexError:
            request = self.native.create_infer_request()
        try:
            alive = []  # the memory behind the tensors
            for name, index, element_type in self._inputs:
                if name in feeds:
                    tensor, memory = to_tensor(feeds[name], element_type)
                    alive.append(memory)
                    request.set_input_tensor(index, tensor)
            request.infer()
            results = [to_array(request.get_output_tensor(i), dtype) for i, dtype in self._outputs]
        except self._errors as error:  # the request is dropped: it may hold half of this run
            raise _run_error(error) from error
        self._idle.append(request)
        return results

    def contradicts_declared_types(self) -> bool:
        """Whether an output comes in another type of numpy's than the model declares."""
        made = runtime.load().Type
        return any(
            dtype is not None and dtype.isbuiltin == 1 and dtype != object and ports.element_type != made(dtype)
            for ports, dtype in ((self.native.outputs[i], dtype) for i, dtype in self._outputs)
        )

    def placement(self) -> tuple[NodePlacement, ...]:
        """Every node that was not folded; OpenVINO compiles a model whole or not at all."""
        return self._placement


def _run_error(error: Exception) -> Exception:
    words = runtime.first_line(error)
    if "Not Implemented" in str(error) or "not implemented" in str(error):
        return UnsupportedModelError(f"OpenVINO cannot run the model on these inputs: {words}")
    return RunError(f"OpenVINO failed while it ran the model: {words}")
