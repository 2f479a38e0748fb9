# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend presets``."""

from __future__ import annotations

import json

import pytest

import onnx_multi_backend as omb
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.engines.openvino import runtime as openvino
from onnx_multi_backend.engines.ort import runtime as ort


def test_every_preset_has_a_row_and_every_unusable_one_a_reason_and_a_cure(cli: Cli) -> None:
    done = cli("presets")
    assert done.code == 0
    rows = {line.split()[0]: line.split()[1] for line in done.out.split("\n\n")[0].splitlines()[1:]}
    states = omb.availability()
    assert rows == {name: "yes" if state.usable else "no" for name, state in states.items()}
    for name, state in states.items():
        if not state.usable:
            paragraph = next(
                p for p in done.out.split("\n\n")[1:] if name in p.splitlines()[0].replace(":", ",").split(", ")
            )
            assert f"why   {state.reason}\n" in paragraph + "\n"
            assert f"cure  {state.cure}\n" in paragraph + "\n"


def test_json_holds_the_same(cli: Cli) -> None:
    content = json.loads(cli("presets", "--json").out)
    assert content["conflict"] == ort.conflict()
    assert list(content["presets"]) == list(omb.presets())
    state = omb.availability()["OrtCpu"]
    assert content["presets"]["OrtCpu"] == {
        "usable": state.usable,
        "devices": list(state.devices),
        "engine": state.engine,
        "reason": state.reason,
        "cure": state.cure,
    }


def test_two_wheels_that_overwrite_each_other_are_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = {"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}
    monkeypatch.setattr(ort, "installed_wheels", lambda: wheels)
    done = cli("presets")
    assert "\nConflict\n" in done.out
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in done.out
    assert done.err == ""


def test_without_any_engine_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime, name in (ort, "ONNX Runtime"), (openvino, "OpenVINO"):
        monkeypatch.setattr(runtime, "why_missing", lambda name=name: f"{name} is not installed")
        monkeypatch.setattr(runtime, "describe", str)
    done = cli("presets")
    assert done.code == 0
    assert " yes " not in done.out
    assert "pip install 'onnx-multi-backend[gpu]'" in done.out
    assert cli("conformance").error() == (
        "No preset is usable here. `onnx-multi-backend presets` says why, and what to install."
    )
