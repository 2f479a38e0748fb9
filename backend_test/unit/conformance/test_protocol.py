# SPDX-License-Identifier: Apache-2.0
"""The protocol suite passes what is right, and each of its checks fails what it is there to catch."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
from onnx.backend.base import Backend

import onnx_multi_backend as omb
from backend_test.unit.conformance.broken_backends import BROKEN, ClaimsADeviceThatItLacks, ReturnsAPlainTuple
from examples.toy_backend import ToyBackend
from onnx_multi_backend.conformance.protocol import protocol_suite
from onnx_multi_backend.errors import OptionError

#: What onnxruntime.backend does not do, in every release that this project runs with.
ONNXRUNTIME_VIOLATIONS = {
    "test_is_compatible_agrees_with_prepare": "it looks at the device and never at the model",
    "test_prepare_refuses_an_unknown_operator_by_name": "it skips every model that imports a domain unknown to onnx",
    "test_run_model_equals_prepare_and_run": "the module calls it run",
    "test_run_names_its_outputs": "run returns a list",
    "test_run_node_computes_one_node": "the module has no run_node, and its class does not implement it",
    "test_run_node_refuses_an_invalid_node": "the module has no run_node",
    "test_run_refuses_a_wrong_number_of_inputs": "inputs beyond the last are ignored",
}

TestToyBackend = protocol_suite(ToyBackend)  # as a user writes it


def result_of(suite: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(suite).run(result)
    return result


def failed(backend: Any, **kwargs: Any) -> list[str]:
    """The checks that a backend fails, by name."""
    result = result_of(protocol_suite(backend, **kwargs))
    return sorted(test.id().rpartition(".")[2] for test, _ in (*result.failures, *result.errors))


def test_a_preset_keeps_the_protocol(preset: type[omb.Preset]) -> None:
    assert failed(preset) == []


def test_the_router_keeps_the_protocol(ort_cpu: type[omb.Preset]) -> None:
    assert failed(omb.backend) == []


def test_options_reach_the_backend(ort_cpu: type[omb.Preset]) -> None:
    options = {"provider_name": "CPUExecutionProvider"}
    suite = protocol_suite(omb.presets()["Ort"], devices=["CPU"], options=options)
    assert result_of(suite).wasSuccessful()
    assert "test_run_can_be_repeated" in failed(ort_cpu, options={"no_such_option": 1})


def test_onnxruntimes_own_backend_breaks_it_in_known_ways(onnxruntime_backend: ModuleType) -> None:
    result = result_of(protocol_suite(onnxruntime_backend, known_violations=ONNXRUNTIME_VIOLATIONS))
    assert result.wasSuccessful()
    assert len(result.expectedFailures) == len(ONNXRUNTIME_VIOLATIONS)


@pytest.mark.parametrize("backend", BROKEN, ids=lambda backend: backend.__name__)
def test_a_broken_backend_fails_the_one_check_for_it(backend: type[Backend]) -> None:
    assert failed(backend) == [BROKEN[backend]]


def test_every_check_can_fail() -> None:
    checks = unittest.defaultTestLoader.getTestCaseNames(protocol_suite(ToyBackend))
    # Without a method run every check of run fails too: see the next test.
    assert {*BROKEN.values(), "test_prepare_returns_something_that_runs"} == set(checks)


def test_a_backend_that_prepares_nothing_fails() -> None:
    failures = failed(Backend)
    assert "test_prepare_returns_something_that_runs" in failures
    assert "test_run_node_computes_one_node" in failures


def test_without_a_device_there_is_one_failure_and_no_pass_of_what_needs_one() -> None:
    backend = next(b for b, check in BROKEN.items() if check == "test_a_device_is_supported")
    result = result_of(protocol_suite(backend))
    assert len(result.failures) == 1
    assert len(result.skipped) > result.testsRun / 2
    assert {reason for _, reason in result.skipped} == {"the backend supports none of the devices CPU, CUDA"}


def test_the_devices_of_a_backend_have_to_be_supported() -> None:
    assert failed(ToyBackend, devices=["CPU"]) == []
    assert failed(ToyBackend, devices=["CPU", "NPU"]) == ["test_a_device_is_supported"]
    assert failed(ClaimsADeviceThatItLacks, devices=["CPU"]) == ["test_a_supported_device_computes"]


def test_a_message_says_what_is_wrong() -> None:
    ((_, text),) = result_of(protocol_suite(ReturnsAPlainTuple)).failures
    assert "result['difference'] raised TypeError" in text
    assert "see onnx.backend.base.namedtupledict" in text


def test_a_known_violation_is_an_expected_failure_with_its_reason() -> None:
    suite = protocol_suite(ReturnsAPlainTuple, known_violations={"test_run_names_its_outputs": "names come with 2.0"})
    result = result_of(suite)
    assert result.wasSuccessful()
    ((test, _),) = result.expectedFailures
    assert str(test.shortDescription()).endswith("Known violation: names come with 2.0")


def test_a_known_violation_that_is_none_fails() -> None:
    result = result_of(protocol_suite(ToyBackend, known_violations={"test_run_names_its_outputs": "outdated"}))
    assert not result.wasSuccessful()
    assert len(result.unexpectedSuccesses) == 1


@pytest.mark.parametrize(
    ("violations", "match"),
    [
        (
            {"test_run_namse_its_outputs": "a typo"},
            "no check 'test_run_namse_its_outputs'. The checks are test_a_device",
        ),
        ({"test_run_names_its_outputs": " "}, "needs a reason"),
        ({"test_run_names_its_outputs": None}, "needs a reason"),
    ],
)
def test_a_violation_needs_a_check_and_a_reason(violations: Mapping[str, str], match: str) -> None:
    with pytest.raises(OptionError, match=match):
        protocol_suite(ToyBackend, known_violations=violations)


def test_neither_pytest_nor_an_engine_is_imported(fresh: Callable[..., str]) -> None:
    code = """
import onnx_multi_backend.conformance.protocol
print([name for name in ("pytest", "onnxruntime", "openvino") if name in sys.modules])
"""
    assert fresh(code) == "[]"
