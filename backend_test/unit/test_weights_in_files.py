# SPDX-License-Identifier: Apache-2.0
"""Weights in a file beside the model that is written into, cut or replaced after the model was prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.models import INT64

COLUMNS = 1024
LARGE = 5000  # rows; more than 16 MiB


def gathering(folder: Path, rows: int, op_type: str = "Gather", opset: int = models.OPSET) -> Path:
    """Rows of weights by their number: engines read them where they lie."""
    np.ones((rows, COLUMNS), np.float32).tofile(folder / "w.bin")
    weights = TensorProto(name="w", data_type=1, dims=[rows, COLUMNS], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", "offset": 0, "length": rows * COLUMNS * 4}.items():
        weights.external_data.add(key=key, value=str(value))
    made = models.model(
        [models.node(op_type, ["w", "i"], ["y"])],
        [models.tensor("i", ("k",), INT64)],
        [models.tensor("y", None)],
        opsets={"": opset},
    )
    made.graph.initializer.append(weights)
    onnx.save(made, folder / "model.onnx")
    return folder / "model.onnx"


def zero(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"\0" * file.stat().st_size)


@pytest.mark.parametrize("opset", [models.OPSET, 28])
def test_a_few_weights_are_safe(preset: type[omb.Preset], tmp_path: Path, opset: int) -> None:
    """In opset 28 the model is rewritten for ONNX Runtime."""
    prepared = preset.prepare(gathering(tmp_path, 100, opset=opset), fallback="full")
    numbers = np.array([5, 99])
    zero(tmp_path / "w.bin")
    assert (prepared.run(numbers)[0] == 1).all()
    os.truncate(tmp_path / "w.bin", 10)
    assert (prepared.run(numbers)[0] == 1).all()
    (tmp_path / "w.bin").unlink()
    assert (prepared.run(numbers)[0] == 1).all()


def cut(file: Path) -> None:
    os.truncate(file, 100)


def replaced(file: Path) -> None:
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes())
    other.replace(file)


@pytest.mark.parametrize("change", [zero, cut, replaced, Path.unlink])
@pytest.mark.parametrize("which", ["w.bin", "model.onnx"])
def test_verify_weights_refuses_to_run(engine: type[omb.Preset], tmp_path: Path, change: Any, which: str) -> None:
    prepared = engine.prepare(gathering(tmp_path, 100), verify_weights=True)
    numbers = np.array([5, 99])
    bound = prepared.bind(numbers)
    assert (prepared.run(numbers)[0] == 1).all()
    change(tmp_path / which)
    for run in (lambda: prepared.run(numbers), bound.run, lambda: prepared.bind(numbers)):
        with pytest.raises(omb.InvalidModelError, match=f"{which}' was changed"):
            run()
    with pytest.raises(omb.InvalidModelError):
        list(prepared.run_many([numbers]))


CHANGED = """
import os, sys
import numpy as np
import onnx_multi_backend as omb
preset, folder, options = omb.presets()[sys.argv[1]], sys.argv[2], eval(sys.argv[3])
prepared = preset.prepare(folder + "/model.onnx", fallback="full", **options)
numbers = np.array([5, 4999])
assert (prepared.run(numbers)[0] == 1).all()
os.truncate(folder + "/w.bin", 100)
try:
    prepared.run(numbers)
except (omb.InvalidModelError, omb.EngineCrashedError) as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, None), ({"verify_weights": True}, "InvalidModelError"), ({"isolate": True}, "EngineCrashedError")],
)
def test_many_weights_are_mapped(
    engine: type[omb.Preset], tmp_path: Path, options: dict[str, Any], wanted: str | None
) -> None:
    """Without an option the engine dies of a file that was cut, which docs/engine-crashes.md says."""
    gathering(tmp_path, LARGE)
    command = [sys.executable, "-c", CHANGED, engine.name, str(tmp_path), repr(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if wanted is None:
        assert done.returncode < 0
    else:
        assert (done.returncode, done.stdout.strip()) == (0, wanted), done.stderr


def test_a_link_to_the_file_is_not_a_change(engine: type[omb.Preset], tmp_path: Path) -> None:
    prepared = engine.prepare(gathering(tmp_path, 100), verify_weights=True)
    os.link(tmp_path / "w.bin", tmp_path / "other.bin")
    (tmp_path / "w.bin").chmod(0o400)
    for _ in range(2):
        assert (prepared.run(np.array([1]))[0] == 1).all()


def test_the_cache_and_models_in_memory(engine: type[omb.Preset], tmp_path: Path) -> None:
    numbers = np.array([5, 99])
    path = gathering(tmp_path, 100)
    for _ in range(2):
        prepared = engine.prepare(path, verify_weights=True, cache_dir=tmp_path / "cache")
        assert (prepared.run(numbers)[0] == 1).all()
    zero(tmp_path / "w.bin")
    with pytest.raises(omb.InvalidModelError, match="was changed"):
        prepared.run(numbers)
    assert engine.prepare(models.relu(), verify_weights=True).run(np.ones((1, 3), np.float32))[0].all()
