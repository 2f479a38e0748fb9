# SPDX-License-Identifier: Apache-2.0
"""Backends that each do one thing wrong, with the one check of the protocol suite that has to notice."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from examples.toy_backend import ToyBackend

#: The backends, and the check that each fails.
BROKEN: dict[type[Backend], str] = {}


def fails(check: str) -> Callable[[type[Backend]], type[Backend]]:
    def register(backend: type[Backend]) -> type[Backend]:
        BROKEN[backend] = check
        return backend

    return register


@fails("test_supports_device_answers_any_string")
class RaisesForAStrangeDevice(ToyBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return {"CPU": True, "CUDA": False, "CPU:0": False, "CUDA:0": False, "CUDA:99": False}[device]


@fails("test_supports_device_answers_any_string")
class AnswersWithANumber(ToyBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return int(super().supports_device(device))  # type: ignore[return-value]


@fails("test_supports_device_answers_any_string")
class SupportsNonsense(ToyBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.startswith(("CPU", "NO_SUCH_DEVICE:"))

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return super().prepare(model, "CPU" if cls.supports_device(device) else device, **kwargs)


@fails("test_a_device_is_supported")
class SupportsNothing(ToyBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return False


@fails("test_a_supported_device_computes")
class ClaimsADeviceThatItLacks(ToyBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device in ("CPU", "CUDA")

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        if device == "CUDA":
            raise RuntimeError("CUDA driver not found")
        return super().prepare(model, device, **kwargs)


@fails("test_an_unsupported_device_is_refused")
class FallsBackInSilence(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return super().prepare(model, "CPU", **kwargs)


@fails("test_an_unsupported_device_is_refused")
class RefusesADeviceWithoutAWord(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        if device != "CPU":
            raise ValueError
        return super().prepare(model, device, **kwargs)


@fails("test_an_unsupported_device_is_refused")
class IgnoresTheDeviceOfANode(ToyBackend):
    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU", *rest: Any, **kwargs: Any) -> Any:
        return super().run_node(node, inputs, "CPU", *rest, **kwargs)


@fails("test_prepare_leaves_the_model_alone")
class TouchesTheModel(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        model.producer_name = "touched"
        return super().prepare(model, device, **kwargs)


@fails("test_prepare_takes_the_tolerances_of_the_stock_runner")
class TakesNoTolerances(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU") -> BackendRep:  # type: ignore[override]
        return super().prepare(model, device)


class RefusesWhenItRuns(BackendRep):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        raise self.error


@fails("test_prepare_refuses_an_invalid_model")
class PreparesAnInvalidModel(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        if any(list(node.input) == ["missing"] for node in model.graph.node):
            return RefusesWhenItRuns(ValueError("no tensor 'missing'"))
        return super().prepare(model, device, **kwargs)


class RefusesOperatorsInItsWay(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        try:
            return super().prepare(model, device, **kwargs)
        except NotImplementedError as error:
            return cls.refuse(error)

    @staticmethod
    def refuse(error: NotImplementedError) -> BackendRep:
        raise error


@fails("test_prepare_refuses_an_unknown_operator_by_name")
class RefusesAnOperatorWhenItRuns(RefusesOperatorsInItsWay):
    @staticmethod
    def refuse(error: NotImplementedError) -> BackendRep:
        return RefusesWhenItRuns(error)


@fails("test_prepare_refuses_an_unknown_operator_by_name")
class DoesNotNameTheOperator(RefusesOperatorsInItsWay):
    @staticmethod
    def refuse(error: NotImplementedError) -> BackendRep:
        raise RuntimeError("Something went wrong.") from None


@fails("test_no_opt_out_counts_as_a_pass")
class OptsOut(RefusesOperatorsInItsWay):
    @staticmethod
    def refuse(error: NotImplementedError) -> BackendRep:
        raise BackendIsNotSupposedToImplementIt(str(error)) from error


class AroundRep(BackendRep):
    """A prepared model of the toy, to be made worse."""

    def __init__(self, rep: BackendRep) -> None:
        self.rep = rep

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        return self.spoil(self.rep.run(inputs))

    def spoil(self, outputs: Any) -> Any:
        return outputs


class Around(ToyBackend):
    Rep: type[AroundRep]

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return cls.Rep(super().prepare(model, device, **kwargs))


@fails("test_run_returns_an_array_for_each_output")
class ReturnsANumberForAScalar(Around):
    class Rep(AroundRep):
        def spoil(self, outputs: Any) -> Any:
            return outputs._make(o.item() if o.shape == () else o for o in outputs)


@fails("test_run_returns_an_array_for_each_output")
class NarrowsItsTypes(Around):
    class Rep(AroundRep):
        def spoil(self, outputs: Any) -> Any:
            return outputs._make(o.astype(np.int32) if o.dtype == np.int64 else o for o in outputs)


@fails("test_run_returns_an_array_for_each_output")
class LosesTheRank(Around):
    class Rep(AroundRep):
        def spoil(self, outputs: Any) -> Any:
            return outputs._make(map(np.atleast_1d, outputs))


@fails("test_run_returns_an_array_for_each_output")
class ReturnsAMapping(Around):
    class Outputs(dict[Any, Any]):
        """Is read by index and by name anyway."""

        def __iter__(self) -> Any:
            return iter(v for k, v in self.items() if isinstance(k, str))

        def __len__(self) -> int:
            return sum(isinstance(k, str) for k in self.keys())

    class Rep(AroundRep):
        def __init__(self, rep: BackendRep) -> None:
            super().__init__(rep)
            self.names = [o.name for o in vars(rep)["_evaluator"].onnx_graph_.output]

        def spoil(self, outputs: Any) -> Any:
            return ReturnsAMapping.Outputs({**dict(enumerate(outputs)), **{n: outputs[n] for n in self.names}})


@fails("test_run_names_its_outputs")
class ReturnsAPlainTuple(Around):
    class Rep(AroundRep):
        def spoil(self, outputs: Any) -> Any:
            return tuple(outputs)


@fails("test_run_leaves_its_inputs_alone")
class WritesIntoItsInputs(Around):
    class Rep(AroundRep):
        def run(self, inputs: Any, **kwargs: Any) -> Any:
            outputs = self.rep.run(inputs)
            inputs[0][...] = 0
            return outputs


@fails("test_run_can_be_repeated")
class Accumulates(Around):
    class Rep(AroundRep):
        total = 0.0

        def spoil(self, outputs: Any) -> Any:
            if outputs._fields != ("y",) or "Sub" not in str(vars(self.rep)["_evaluator"].proto_):
                return outputs
            self.total, before = self.total + 1, self.total
            return outputs._make(o + before for o in outputs)


@fails("test_a_result_outlives_the_next_run")
class ReusesItsBuffers(Around):
    class Rep(AroundRep):
        kept: Any = None

        def spoil(self, outputs: Any) -> Any:
            if self.kept is None or len(outputs) == 1:
                self.kept = outputs
            for buffer, value in zip(self.kept, outputs, strict=True):
                buffer[...] = value
            return self.kept


@fails("test_a_result_outlives_the_next_run")
class ReturnsViewsOfItsInputs(Around):
    class Rep(AroundRep):
        def run(self, inputs: Any, **kwargs: Any) -> Any:
            outputs = self.rep.run(inputs)
            return outputs._make(inputs[0].ravel() if o.ndim == 1 else o for o in outputs)  # type: ignore[attr-defined]


@fails("test_prepared_models_are_independent")
class CachesWithoutTheWeights(ToyBackend):
    cache: dict[str, BackendRep] = {}

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        fresh = super().prepare(model, device, **kwargs)
        return cls.cache.setdefault(str((model.graph.node, model.graph.output)), fresh)


@fails("test_run_refuses_a_wrong_number_of_inputs")
class IgnoresInputsBeyondTheLast(Around):
    class Rep(AroundRep):
        def run(self, inputs: Any, **kwargs: Any) -> Any:
            return self.rep.run(inputs[:2])


@fails("test_run_model_equals_prepare_and_run")
class RunsAModelInAnotherOrder(ToyBackend):
    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        right = kwargs.pop("right", False)
        return super().run_model(model, inputs if right else inputs[::-1], device, **kwargs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, *rest: Any, **kwargs: Any) -> Any:
        return super().run_node(node, inputs, *rest, right=True, **kwargs)


@fails("test_run_node_computes_one_node")
class RunsANodeInAnotherOrder(ToyBackend):
    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, *rest: Any, **kwargs: Any) -> Any:
        return super().run_node(node, inputs[::-1], *rest, **kwargs)


@fails("test_run_node_computes_one_node")
class RunsNoNode(ToyBackend):
    @classmethod
    def run_node(cls, node: NodeProto, *rest: Any, **kwargs: Any) -> Any:
        super().run_node(node, *rest, **kwargs)  # returns None, as onnx.backend.base does


@fails("test_run_node_computes_one_node")
class SkipsRunNode(ToyBackend):
    @classmethod
    def run_node(cls, node: NodeProto, *rest: Any, **kwargs: Any) -> Any:
        raise unittest.SkipTest("no run_node today")


@fails("test_run_node_refuses_an_invalid_node")
class RunsAnInvalidNode(ToyBackend):
    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, *rest: Any, **kwargs: Any) -> Any:
        return tuple(inputs) if node.op_type == "Concat" else super().run_node(node, inputs, *rest, **kwargs)


@fails("test_is_compatible_answers_any_model")
class RaisesForAnEmptyModel(ToyBackend):
    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return model.graph.node[0].op_type != "" and super().is_compatible(model, device, **kwargs)


@fails("test_is_compatible_answers_any_model")
class IsCompatibleByNumber(ToyBackend):
    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return int(super().is_compatible(model, device, **kwargs))  # type: ignore[return-value]


@fails("test_is_compatible_agrees_with_prepare")
class IsCompatibleWithEverything(ToyBackend):
    is_compatible = Backend.is_compatible


@fails("test_is_compatible_agrees_with_prepare")
class IsCompatibleWithNothing(ToyBackend):
    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return False
