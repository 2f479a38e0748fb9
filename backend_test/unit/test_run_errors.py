# SPDX-License-Identifier: Apache-2.0
"""Inputs that do not fit the model are refused before the engine sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

A = np.zeros((2, 3), np.float32)

WRONG: dict[str, tuple[Any, str]] = {
    "too few": ([A], "takes 2 inputs, 1 given.*a: tensor.float..*b: tensor"),
    "none": ([], "takes 2 inputs, 0 given"),
    "a single array": (A, "takes 2 inputs, a single value given"),
    "too many": ([A, A, A], "takes 2 inputs, 3 given"),
    "unknown name": ({"a": A, "b": A, "c": A}, r"no input 'c'\. Its inputs are a: .*; b: "),
    "misspelt name": ({"a": A, "B": A}, "no input 'B'"),
    "missing name": ({"a": A}, "'b' missing"),
    "an integer name": ({0: A, 1: A}, "no input 0"),
    "float64": ([A.astype(np.float64), A], r"input 'a'.*float64 given, the model wants float32.*astype\('float32'\)"),
    "integers": ({"a": A, "b": A.astype(np.int64)}, "input 'b'.*int64"),
    "bools": ([A.astype(bool), A], "input 'a'.*bool given"),
    "complex": ([A.astype(np.complex64), A], "input 'a'.*complex64"),
    "strings": ([A.astype(str), A], "input 'a'.*given, the model wants float32"),
    "objects": ([A.astype(object), A], "input 'a'.*object given"),
    "big-endian float64": ([A.astype(">f8"), A], "input 'a'.*float64"),
    "rank below": ([A[0], A], r"input 'a'.*shape \(3,\) has rank 1"),
    "rank above": ([A, A[None]], r"input 'b'.*shape \(1, 2, 3\) has rank 3"),
    "a scalar": ([np.float32(1), A], "input 'a'.*rank 0"),
    "a Python number": ([1.0, A], "input 'a'.*rank 0"),
    "fixed dimension": ([A[:, :2], A], "input 'a'.*dimension 1 is 2.*fixes it to 3"),
    "a fixed dimension of zero": ([A[:, :0], A], "dimension 1 is 0"),
    "None": ([None, A], "input 'a'.*None given.*not optional"),
    "None by name": ({"a": A, "b": None}, "input 'b'.*None given"),
    "a list of lists": ([A.tolist(), A], "input 'a'.*list given"),
    "all of them None": (None, "2 inputs|None"),
    "a set": ({1, 2}, "2 inputs|set"),
}


@pytest.mark.parametrize("name", WRONG)
def test_inputs_that_do_not_fit_are_refused(engine: type[omb.Preset], name: str) -> None:
    inputs, message = WRONG[name]
    rep = engine.prepare(models.subtract())
    with pytest.raises(omb.InputError, match=message):
        rep.run(inputs)
    np.testing.assert_array_equal(rep.run([A, A])[0], A)  # and it goes on working


@pytest.mark.parametrize(
    "value", [np.zeros((2, 3)), np.zeros(3, np.float32), np.zeros((2, 4), np.float32), None, "x", [1.0]]
)
def test_a_single_input_that_does_not_fit_is_refused(preset: type[omb.Preset], value: Any) -> None:
    with pytest.raises(omb.InputError, match="'x'"):
        preset.prepare(models.relu()).run(value)


def test_an_example_that_does_not_fit_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="float64"):
        engine.prepare(models.relu(), input_example=np.zeros((1, 3)))


def test_a_failure_inside_the_engine_is_a_run_error(engine: type[omb.Preset]) -> None:
    made = models.one_node("Add", [models.tensor("a", ["N"]), models.tensor("b", ["M"])], [models.tensor("y", ["K"])])
    rep = engine.prepare(made)
    with pytest.raises(omb.RunError, match=r"(?i)failed while it ran the model: .*(broadcast|dimension|shape|axis)"):
        rep.run([np.zeros(2, np.float32), np.zeros(3, np.float32)])
    np.testing.assert_array_equal(rep.run([np.ones(2, np.float32), np.ones(2, np.float32)])[0], [2, 2])


def test_an_unknown_run_option_is_refused_with_the_known_ones(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.relu())
    with pytest.raises(omb.OptionError, match=r"no run option 'log_level'.*log_severity_level"):
        rep.run(A, log_level=0)


def test_a_run_option_of_a_wrong_type_is_refused(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="log_severity_level"):
        ort_cpu.prepare(models.relu()).run(A, log_severity_level="loud")


def test_run_options_reach_onnx_runtime(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.relu())
    np.testing.assert_array_equal(rep.run(A, log_severity_level=3, logid="here")[0], A)
    np.testing.assert_array_equal(rep.run(A, **{"memory.enable_memory_arena_shrinkage": "cpu:0"})[0], A)
    with pytest.raises(omb.RunError, match="(?i)arena|device"):
        rep.run(A, **{"memory.enable_memory_arena_shrinkage": "nonsense"})


def test_openvino_has_no_run_options(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="OpenVINO has no run options; log_severity_level"):
        openvino.prepare(models.relu()).run(A, log_severity_level=0)
