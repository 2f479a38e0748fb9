# SPDX-License-Identifier: Apache-2.0
"""Presets that hand an engine the same as another one: of their official suites a sample is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import onnx_multi_backend as omb
from backend_test import test_ort, test_ort_openvino_float, test_ort_openvino_int8
from backend_test.unit import models

CPU = "CPUExecutionProvider"


def _target(preset: type[omb.Preset], **options: Any) -> Any:
    return replace(preset.prepare(models.relu(), **options)._target, preset="")  # type: ignore[type-var]


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
