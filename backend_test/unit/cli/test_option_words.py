# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings of the command name options as the command takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli

Save = Callable[..., Path]


@pytest.fixture
def relu(saved: Save) -> Path:
    return saved(models.relu())


def test_an_unknown_device(cli: Cli, relu: Path) -> None:
    error = cli("run", relu, "--random", "--device", "TPU").error()
    assert "for another preset pass --preset NAME, for another execution provider --preset Ort and" in error
    assert "--option provider_name=NAME" in error


def test_a_value_of_an_option(cli: Cli, relu: Path) -> None:
    run = ("run", relu, "--random", "--preset", "OrtCpu", "--option")
    assert cli(*run, "adapt=no").error() == "adapt is true or false; 'no' was given."
    assert "needs --option isolate=true" in cli(*run, "time_limit=5").error()
    table = cli("run", relu, "--random", "--preset", "OrtTensorrtInt8").error()
    assert table.startswith("OrtTensorrtInt8 needs --option calibration_table=VALUE: a path")
    assert "With null the engine chooses" in cli(*run, "intra_op_num_threads=0").error()
    assert (
        """for example --option 'input_shapes={"x": [1, 3, 224, 224]}'"""
        in cli(*run, 'input_shapes={"x": "1,3"}').error()
    )


@pytest.mark.parametrize("isolate", ["false", "true"], ids=["here", "in a process of its own"])
def test_a_warning(cli: Cli, saved: Save, isolate: str) -> None:
    if not omb.availability()["Openvino"].usable:
        pytest.skip("Openvino cannot be used here")
    x, y = (models.tensor(name, [3], onnx.TensorProto.DOUBLE) for name in "xy")
    double = saved(models.one_node("Exp", [x], [y]))
    done = cli("run", double, "--random", "--preset", "Openvino", "--option", f"isolate={isolate}")
    assert "pass --option precision_policy=strict to refuse such models" in done.err
    assert cli("run", double, "--random", "--preset", "Openvino", "--option", "precision_policy=strict").code == 2


def test_a_refusal_is_answered_by_an_option_that_the_command_takes(cli: Cli, saved: Save) -> None:
    if not omb.availability()["OrtOpenvino"].usable:
        pytest.skip("OrtOpenvino cannot be used here")
    square = saved(models.one_node("Det", [models.tensor("x", [4, 4])], [models.tensor("y", [])]))
    on = ("--preset", "OrtOpenvino")
    assert "pass --fallback full to run them" in cli("run", square, "--random", *on).error()
    assert cli("run", square, "--random", *on, "--fallback", "full").code == 0
    assert cli("bench", square, *on, "--fallback", "full", "--seconds", "0.1").code == 0
