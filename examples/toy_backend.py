# SPDX-License-Identifier: Apache-2.0
"""How to write an ONNX backend: one on ONNX's reference evaluator, in the form of a class.

Its engine is slow and its protocol complete. `onnx_multi_backend.conformance.protocol.protocol_suite` holds it to the
protocol. From the folder that holds ``examples``, ONNX's official suite runs on it as a command and as tests::

    onnx-multi-backend conformance --backend examples.toy_backend.ToyBackend
    pytest --pyargs onnx_multi_backend.conformance --onnx-backend examples.toy_backend.ToyBackend
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict
from onnx.reference import ReferenceEvaluator

from onnx_multi_backend.errors import UnsupportedModelError


class ToyRep(BackendRep):
    """A model that is ready to run: whatever can be refused has been refused by now."""

    def __init__(self, model: ModelProto) -> None:
        try:
            self._evaluator = ReferenceEvaluator(model)
        except (NotImplementedError, RuntimeError) as error:
            # The one exception that the suite counts as refused; any other is a failure.
            first_line = str(error).partition("\n")[0]
            raise UnsupportedModelError(f"The toy cannot run {model.graph.name!r}: {first_line}") from error
        stored = {t.name for t in model.graph.initializer}
        self._inputs = [i.name for i in model.graph.input if i.name not in stored]
        self._outputs = namedtupledict("Outputs", [o.name for o in model.graph.output])

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run on a list of inputs; returns the outputs by index and by name."""
        if len(inputs) != len(self._inputs):
            raise ValueError(f"{len(self._inputs)} inputs are needed ({self._inputs}), {len(inputs)} were given.")
        values = self._evaluator.run(None, dict(zip(self._inputs, inputs, strict=True)))
        return self._outputs(*map(_owned, values))


class ToyBackend(Backend):
    """Runs models on `onnx.reference.ReferenceEvaluator`, on the CPU."""

    name = "the toy, on ONNX's reference evaluator"
    version = onnx.__version__

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether the backend runs on a device; any string gets an answer."""
        return device == "CPU"

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tell whether `prepare` takes a model, by trying."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # also a broken model deserves an answer
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Make a model ready to run, or refuse it and say why."""
        if not cls.supports_device(device):
            raise ValueError(f"The toy runs on 'CPU' only; {device!r} was asked for.")
        unknown = kwargs.keys() - {"rtol", "atol"}  # ONNX's runner may pass these two
        if unknown:
            raise TypeError(f"The toy has no options; {sorted(unknown)} were given.")
        super().prepare(model, device)  # checks that the model is valid
        return ToyRep(model)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator, as a model of one node."""
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        given = [_typed(name, a.dtype, a.shape) for name, a in zip(node.input, inputs, strict=True)]
        if outputs_info is None:
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
        else:
            outputs = [_typed(name, *info) for name, info in zip(node.output, outputs_info, strict=True)]
        graph = helper.make_graph([node], node.op_type, given, outputs)
        opsets = [helper.make_opsetid("", version)] + ([helper.make_opsetid(node.domain, 1)] if node.domain else [])
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets))
        return cls.run_model(model, inputs, device, **kwargs)


def _typed(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def _owned(value: Any) -> Any:
    """Copy a tensor: the evaluator may return a view of an input, and a scalar of rank 0 as no array."""
    return np.array(value) if isinstance(value, (np.ndarray, np.generic)) else value
