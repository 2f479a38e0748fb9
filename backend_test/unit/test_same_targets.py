# SPDX-License-Identifier: Apache-2.0
"""Presets that hand an engine the same as another one: of their official suites a sample is enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onnx_multi_backend as omb
from backend_test import test_ort, test_ort_openvino_float, test_ort_openvino_int8
from backend_test.unit import models
from onnx_multi_backend.cli.conformance_plan import make_plans
from onnx_multi_backend.presets.registry import PART_OF

CPU = "CPUExecutionProvider"


def test_a_preset_shares_the_files_of_the_one_that_it_is_a_part_of(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    assert {"Ort": test_ort.SAME_AS, **_parts_of_openvino()} == PART_OF
    (plan,), _ = make_plans(["Ort"], None, None, {}, own_options=False, folder=None, file=None)
    assert Path(plan.source).name == "ort_cpu.toml"
    assert plan.strict
    (tmp_path / "ort.toml").touch()
    (own,), _ = make_plans(["Ort"], None, None, {}, own_options=False, folder=tmp_path, file=None)
    assert Path(own.source).name == "ort.toml"


def _parts_of_openvino() -> dict[str, str]:
    return {"OrtOpenvinoFloat": test_ort_openvino_float.SAME_AS, "OrtOpenvinoInt8": test_ort_openvino_int8.SAME_AS}


def _target(preset: type[omb.Preset], **options: Any) -> Any:
    return replace(preset.prepare(models.relu(), **options)._sessions.target, preset="")  # type: ignore[type-var]


def test_ort_with_the_cpu_provider_is_ort_cpu(ort_cpu: type[omb.Preset]) -> None:
    assert test_ort.SAME_AS == "OrtCpu"
    other = _target(omb.OrtBackend, provider_name=CPU)
    own = _target(ort_cpu)
    assert replace(other, session_options=None) == replace(own, session_options=None)
    assert not other.session_options
    assert not own.session_options


def test_the_floats_preset_is_ort_openvino(openvino_ep: type[omb.Preset]) -> None:
    assert test_ort_openvino_float.SAME_AS == "OrtOpenvino"
    assert _target(omb.OrtOpenvinoFloatBackend) == _target(openvino_ep)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.PresetWarning")
def test_the_int8_preset_differs_in_what_becomes_of_quantizing_nodes_alone(openvino_ep: type[omb.Preset]) -> None:
    assert test_ort_openvino_int8.SAME_AS == "OrtOpenvino"
    other, own = _target(omb.OrtOpenvinoInt8Backend), _target(openvino_ep)
    assert other.session_options == {**own.session_options, "session.disable_double_qdq_remover": "1"}
    assert replace(other, session_options=None) == replace(own, session_options=None)
