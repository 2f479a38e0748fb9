# SPDX-License-Identifier: Apache-2.0
"""``run --setup``: preset, device and options from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli


def test_run_takes_one_from_a_file(
    ort_cpu: type[omb.Preset], cli: Cli, saved: Callable[[ModelProto], Path], tmp_path: Path
) -> None:
    file = tmp_path / "tuned.json"
    file.write_text(
        json.dumps({"setup": omb.Setup("OrtCpu", None, {"intra_op_num_threads": 1}).to_json(), "p50_ms": 1.5})
    )
    run = ("run", saved(models.relu()), "--random", "--setup", str(file))
    assert "OrtCpu" in cli(*run).out
    assert "Leave --preset" in cli(*run, "--preset", "Openvino").err
    file.write_text("{}")
    assert "of which preset is needed" in cli(*run).err
    file.write_text("{")
    assert "it is not JSON" in cli(*run).err
