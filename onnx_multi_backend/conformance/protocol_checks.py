# SPDX-License-Identifier: Apache-2.0
"""What `onnx.backend.base` asks of a backend, one check a method.

Where a backend computes cannot be seen from here: a device is held to right values, and to refusals where it is not
supported.
"""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto, helper
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from onnx_multi_backend.conformance import protocol_models as models
from onnx_multi_backend.conformance.cases import STANDARD_DEVICES
from onnx_multi_backend.conformance.tester import BackendTester

_ALSO_TRIED = ("CPU:0", "CUDA:0", "CUDA:99")
_NONSENSE = ("NO_SUCH_DEVICE", "NO_SUCH_DEVICE:0", "no such device", "CPU:no")


class NoDevice(unittest.SkipTest):
    """The backend supports none of the devices, so that a check which needs one cannot be made."""


class ProtocolChecks(unittest.TestCase):
    """The checks; `protocol_suite` makes a subclass for a backend."""

    backend: ClassVar[Any]
    devices: ClassVar[Sequence[str] | None] = None
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    # Devices.

    def test_supports_device_answers_any_string(self) -> None:
        """supports_device returns a bool for any string, and False for nonsense."""
        for device in (*self._tried, *_NONSENSE, ""):
            try:
                answer = self.backend.supports_device(device)
            except Exception as e:
                self.fail(f"supports_device({device!r}) raised {type(e).__name__}: {e}")
            self._hold(type(answer) is bool, f"supports_device({device!r}) returned {answer!r}, which is not a bool")
            if device in _NONSENSE:
                self._hold(not answer, f"supports_device({device!r}) said True to nonsense")

    def test_a_device_is_supported(self) -> None:
        """The backend supports a device here: each one that was named for it, or else CPU or CUDA."""
        if self.devices is not None:
            missing = [d for d in self.devices if not self.backend.supports_device(d)]
            self._hold(not missing, f"supports_device says False to {missing}, named as the backend's own devices")
        else:
            self._hold(
                any(map(self.backend.supports_device, STANDARD_DEVICES)),
                f"supports_device says False to each of {STANDARD_DEVICES}: name the backend's own devices with "
                "protocol_suite(backend, devices=[...])",
            )

    def test_a_supported_device_computes(self) -> None:
        """On each device that supports_device says True to, a model is prepared and computes the right values."""
        supported = [d for d in self._tried if self.backend.supports_device(d)]
        found = BackendTester(self.backend, options=self.options).device_support(supported)
        lies = [f"{device!r}: {support.error}" for device, support in found.items() if not support.prepares]
        self._hold(not lies, f"supports_device said True, and yet on {'; '.join(lies)}")

    def test_an_unsupported_device_is_refused(self) -> None:
        """On a device that supports_device says False to, nothing runs: it is refused with a message."""
        a, b = models.example_inputs()
        node = helper.make_node("Sub", ["a", "b"], ["y"])
        for device in (*self._tried, *_NONSENSE):
            if self._supports(device):
                continue
            self._refused(f"to work on {device!r}", "prepare", models.difference(), device)
            for method, what in (("run_model", models.difference()), ("run_node", node)):
                if hasattr(self.backend, method):  # what is missing fails the check of its values
                    self._refused(f"to work on {device!r}", method, what, [a, b], device)

    # Preparing.

    def test_prepare_returns_something_that_runs(self) -> None:
        """Prepare returns a BackendRep, or something else that has a method run."""
        rep = self._prepare(models.difference())
        run = getattr(rep, "run", None)
        self._hold(callable(run), f"prepare returned {type(rep).__name__}, which has no method run")

    def test_prepare_leaves_the_model_alone(self) -> None:
        """Prepare does not change the caller's model."""
        model = models.many_outputs()
        before = model.SerializeToString(deterministic=True)
        self._prepare(model)
        self._hold(model.SerializeToString(deterministic=True) == before, "prepare changed the model")

    def test_prepare_takes_the_tolerances_of_the_stock_runner(self) -> None:
        """Prepare accepts rtol and atol, which ONNX's own runner passes on to it."""
        rep = self._prepare(models.difference(), rtol=1e-3, atol=1e-7)
        self._assert_difference(rep.run(models.example_inputs()), "after prepare with rtol and atol, run")

    def test_prepare_refuses_an_invalid_model(self) -> None:
        """Prepare checks the model, as Backend.prepare does, and refuses an invalid one with a message."""
        for wrong, model in models.invalid().items():
            self._refused(wrong, "prepare", model, self._device)

    def test_prepare_refuses_an_unknown_operator_by_name(self) -> None:
        """An operator that the backend lacks is refused by prepare, not by run, and the message names it."""
        error = self._refused("an operator of an unknown domain", "prepare", models.unknown(), self._device)
        self._hold(models.UNKNOWN_OPERATOR in str(error), f"prepare does not name {models.UNKNOWN_OPERATOR}: {error}")

    def test_no_opt_out_counts_as_a_pass(self) -> None:
        """What the backend lacks it refuses with another exception than the one that the stock runner passes."""
        node = helper.make_node(models.UNKNOWN_OPERATOR, ["x"], ["y"], domain=models.UNKNOWN_DOMAIN)
        x = models.example_inputs()[0]
        asked: dict[str, tuple[Any, ...]] = {
            "prepare": (models.unknown(),),
            "run_model": (models.unknown(), [x]),
            "run_node": (node, [x]),
        }
        for method, arguments in asked.items():
            if hasattr(self.backend, method):
                error = self._error_of(method, *arguments, self._device)
                self._hold(
                    not isinstance(error, BackendIsNotSupposedToImplementIt),
                    f"{method} opted out of {models.UNKNOWN_OPERATOR}: ONNX's own runner would count a pass",
                )

    # Running.

    def test_run_returns_an_array_for_each_output(self) -> None:
        """Run returns a sequence: one numpy array an output, in the graph's order, with dtype, shape and values."""
        outputs = self._prepare(models.many_outputs()).run(models.example_inputs())
        self._assert_arrays(outputs, list(models.many_outputs_expected().items()))

    def test_run_names_its_outputs(self) -> None:
        """What run returns knows its outputs by name, as onnx.backend.base.namedtupledict does: result["y"]."""
        outputs = self._prepare(models.many_outputs()).run(models.example_inputs())
        for name, expected in models.many_outputs_expected().items():
            try:
                value = outputs[name]
            except Exception as e:
                self.fail(f"result[{name!r}] raised {type(e).__name__}: {e}; see onnx.backend.base.namedtupledict")
            np.testing.assert_array_equal(value, expected, f"result[{name!r}] is another output")

    def test_run_leaves_its_inputs_alone(self) -> None:
        """Run does not write into the caller's arrays."""
        inputs = models.example_inputs()
        self._prepare(models.rearranged()).run(inputs[:1])
        self._prepare(models.difference()).run(inputs)
        for i, (array, before) in enumerate(zip(inputs, models.example_inputs(), strict=True)):
            np.testing.assert_array_equal(array, before, f"run changed input {i}")

    def test_run_can_be_repeated(self) -> None:
        """The same inputs give the same result a second time."""
        rep = self._prepare(models.difference())
        for when in ("the first run", "the second run"):
            self._assert_difference(rep.run(models.example_inputs()), when)

    def test_a_result_outlives_the_next_run(self) -> None:
        """The next run, its input in the same buffer, does not change an earlier result."""
        first, second = models.example_inputs()
        rep = self._prepare(models.rearranged())
        buffer = first.copy()
        positive, flat = rep.run([buffer])
        buffer[...] = second
        rep.run([buffer])
        np.testing.assert_array_equal(positive, np.maximum(first, 0), "the next run changed an earlier result")
        np.testing.assert_array_equal(flat, first.ravel(), "the next run, or its inputs, changed an earlier result")

    def test_prepared_models_are_independent(self) -> None:
        """Two prepared models with the same names keep their own weights, whichever runs in between."""
        x = models.example_inputs()[0]
        reps = {factor: self._prepare(models.times(factor)) for factor in (2, 3)}
        for factor in (2, 3, 2):
            message = "a prepared model computed with another one's weights"
            np.testing.assert_array_equal(reps[factor].run([x.copy()])[0], x * factor, message)

    def test_run_refuses_a_wrong_number_of_inputs(self) -> None:
        """Too few inputs and too many are an error with a message."""
        a, b = models.example_inputs()
        rep = self._prepare(models.difference())
        for inputs in ([], [a], [a, b, b]):
            self._refused(f"{len(inputs)} inputs for a model of 2", "run", inputs, of=rep)

    def test_run_model_equals_prepare_and_run(self) -> None:
        """run_model returns what run of the prepared model does."""
        outputs = self.backend.run_model(models.difference(), models.example_inputs(), self._device, **self.options)
        self._assert_difference(outputs, "run_model")

    # One node.

    def test_run_node_computes_one_node(self) -> None:
        """run_node computes a node, with outputs_info and without."""
        node, device = helper.make_node("Sub", ["a", "b"], ["y"]), self._device
        outputs = self.backend.run_node(node, models.example_inputs(), device, **self.options)
        self._assert_difference(outputs, "run_node")
        info = [(np.dtype(np.float32), (2, 3))]
        outputs = self.backend.run_node(node, models.example_inputs(), device, info, **self.options)
        self._assert_difference(outputs, "run_node with outputs_info")

    def test_run_node_refuses_an_invalid_node(self) -> None:
        """run_node checks the node, as Backend.run_node does, and refuses an invalid one with a message."""
        x = models.example_inputs()[0]
        for node in (helper.make_node(models.UNKNOWN_OPERATOR, ["x"], ["y"]), helper.make_node("Concat", ["x"], ["y"])):
            self._refused(f"an invalid node {node.op_type}", "run_node", node, [x], self._device)

    # Compatibility.

    def test_is_compatible_answers_any_model(self) -> None:
        """is_compatible returns a bool for any model, an invalid, unsupported or empty one too."""
        device = self._device
        for what, model in {**self._models(), "an empty ModelProto": ModelProto()}.items():
            try:
                answer = self.backend.is_compatible(model, device, **self.options)
            except Exception as e:
                self.fail(f"is_compatible raised {type(e).__name__} for {what}: {e}")
            self._hold(type(answer) is bool, f"is_compatible returned {answer!r} for {what}, which is not a bool")

    def test_is_compatible_agrees_with_prepare(self) -> None:
        """What is_compatible says True to is prepared, and what it says False to is refused."""
        for what, model in self._models().items():
            answer = self.backend.is_compatible(model, self._device, **self.options)
            error = self._error_of("prepare", model, self._device)
            did = "took it" if error is None else f"refused it: {error}"
            self._hold(answer == (error is None), f"is_compatible said {answer} to {what}, and prepare {did}")

    # How the checks ask.

    def _hold(self, condition: bool, message: str) -> None:
        if not condition:
            self.fail(message)

    @property
    def _tried(self) -> tuple[str, ...]:
        """Device strings that make sense, supported or not."""
        return tuple(dict.fromkeys((*(self.devices or ()), *STANDARD_DEVICES, *_ALSO_TRIED)))

    @property
    def _device(self) -> str:
        """The device to compute on: the first that the backend supports."""
        devices = STANDARD_DEVICES if self.devices is None else self.devices
        for device in devices:
            if self._supports(device):
                return device
        raise NoDevice(f"the backend supports none of the devices {', '.join(devices)}")

    def _supports(self, device: str) -> bool:
        try:
            return bool(self.backend.supports_device(device))
        except Exception:  # has a check of its own
            return False

    def _prepare(self, model: ModelProto, **more: Any) -> Any:
        return self.backend.prepare(model, self._device, **self.options, **more)

    def _error_of(self, method: str, *arguments: Any, of: Any = None) -> Exception | None:
        """What a method of the backend raises, or of a prepared model."""
        options = self.options if of is None else {}
        call = getattr(self.backend if of is None else of, method)
        try:
            call(*arguments, **options)
        except Exception as error:
            return error
        return None

    def _refused(self, what: str, method: str, *arguments: Any, of: Any = None) -> Exception:
        """Hold a method to raise an exception with a message."""
        error = self._error_of(method, *arguments, of=of)
        if error is None:
            self.fail(f"{method} did not refuse {what}")
        self._hold(bool(str(error).strip()), f"{method} refused {what} without a message: {type(error).__name__}")
        return error

    def _models(self) -> dict[str, ModelProto]:
        valid = {"a valid model": models.difference(), "an unknown operator": models.unknown()}
        return {**valid, **models.invalid()}

    def _assert_difference(self, outputs: Any, who: str) -> None:
        a, b = models.example_inputs()
        self._hold(outputs is not None, f"{who} returned None")
        self._hold(len(outputs) == 1, f"{who} returned {len(outputs)} outputs of 1")
        np.testing.assert_array_equal(outputs[0], a - b, f"{who} returned wrong values")

    def _assert_arrays(self, outputs: Any, expected: Sequence[tuple[str, np.ndarray[Any, Any]]]) -> None:
        is_sequence = hasattr(outputs, "__len__") and not isinstance(outputs, (Mapping, np.ndarray))
        self._hold(is_sequence, f"run returned {type(outputs).__name__}, which is not a sequence of outputs")
        self._hold(len(outputs) == len(expected), f"run returned {len(outputs)} outputs of {len(expected)}")
        for i, (name, right) in enumerate(expected):
            value, where = outputs[i], f"output {i}, {name!r},"
            self._hold(isinstance(value, np.ndarray), f"{where} is {type(value).__name__} and no numpy array")
            self._hold(value.dtype == right.dtype, f"{where} is of {value.dtype}, not of {right.dtype}")
            self._hold(value.shape == right.shape, f"{where} has the shape {value.shape}, not {right.shape}")
            np.testing.assert_array_equal(value, right, f"{where} has wrong values")
