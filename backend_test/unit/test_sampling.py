# SPDX-License-Identifier: Apache-2.0
"""What is left out of an environment because another one proves it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from onnx_multi_backend import OpenvinoBackend, OrtCpuBackend
from backend_test.unit.conftest import engine, openvino, ort_cpu, preset

@pytest.mark.parametrize("number", range(240))
def test_on_each(preset, number): ...
@pytest.mark.parametrize("number", range(240))
def test_by_name(openvino, number): ...
@pytest.mark.parametrize("number", range(240))
def test_on_both(openvino, ort_cpu, number): ...
@pytest.mark.parametrize("number", range(240))
def test_on_none(number): ...
@pytest.mark.parametrize("number", range(240))
@pytest.mark.parametrize("backend", [OpenvinoBackend, OrtCpuBackend])
def test_on_a_class(backend, number): ...
@pytest.mark.parametrize("number", range(240))
@pytest.mark.parametrize("name", ["openvino", "ort_cpu"])
def test_on_a_fixture(request, name, number): request.getfixturevalue(name)
"""


def _collected(folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "backend_test.sampling", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_of_a_preset_that_is_proven_elsewhere_a_sample_runs(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    whole = set(_collected(tmp_path))
    left_out = whole - set(_collected(tmp_path, "--proven-elsewhere=Openvino"))
    known = (
        "test_by_name",
        "test_on_each[Openvino-",
        "test_on_a_class[OpenvinoBackend-",
        "test_on_a_fixture[openvino-",
    )
    assert all(any(start in name for start in known) for name in left_out), left_out
    for name in known:
        of_this = [test for test in whole if name in test]
        assert len(of_this) == 240
        assert 0 < len([test for test in of_this if test not in left_out]) < 40
