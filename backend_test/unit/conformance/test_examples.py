# SPDX-License-Identifier: Apache-2.0
"""The bad backend is as bad as it says, on each of its operators; the toy runs what official cases ask of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
from onnx.checker import ValidationError

from backend_test.unit.models import one_node, relu, tensor
from examples.bad_backend import BadBackend
from examples.toy_backend import ToyBackend
from onnx_multi_backend.errors import UnsupportedModelError

ROOT = Path(__file__).parents[3]
X = np.float32([[1.5, -2.5, 3.5]])


def run(op_type: str) -> Any:
    model = one_node(op_type, [tensor("x")], [tensor("y")])
    return BadBackend.prepare(model, "CPU").run([X])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that end a process")
@pytest.mark.parametrize(("op_type", "died_of"), [("Abs", signal.SIGSEGV), ("Ceil", signal.SIGABRT)])
def test_it_takes_the_process_down(op_type: str, died_of: signal.Signals) -> None:
    code = f"from backend_test.unit.conformance.test_examples import run; run({op_type!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -died_of, done.stderr


def test_it_hangs() -> None:
    thread = threading.Thread(target=run, args=["Neg"], daemon=True)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive()


def test_it_is_wrong() -> None:
    np.testing.assert_array_equal(run("Floor")[0], np.floor(X) + 1)


@pytest.mark.parametrize(
    ("op_type", "error"),
    [("Sin", RuntimeError), ("Sign", BackendIsNotSupposedToImplementIt), ("Cos", UnsupportedModelError)],
)
def test_it_raises(op_type: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=op_type) as caught:
        run(op_type)
    assert caught.type is error


def test_it_is_right_otherwise() -> None:
    np.testing.assert_array_equal(run("Relu")[0], np.maximum(X, 0))


def test_the_toy_runs_a_node_of_an_older_opset() -> None:
    clip = helper.make_node("Clip", ["x"], ["y"], min=-1.0, max=2.0)  # attributes up to opset 6, inputs since 11
    np.testing.assert_array_equal(ToyBackend.run_node(clip, [X], opset_version=6)[0], np.clip(X, -1, 2))
    with pytest.raises(ValidationError, match="Unrecognized attribute"):
        ToyBackend.run_node(clip, [X])


def test_the_toy_has_no_options() -> None:
    with pytest.raises(TypeError, match="threads"):
        ToyBackend.prepare(relu(), threads=1)
