# SPDX-License-Identifier: Apache-2.0
"""A portable model of a transformer: ONNX Runtime and OpenVINO give the same to within a step."""

from __future__ import annotations

import pytest

from backend_test.unit.calibration.test_agreement import apart, transformer


@pytest.mark.usefixtures("openvino")
def test_a_portable_transformer_is_within_a_step_on_every_engine() -> None:
    usual = transformer("ort")
    assert usual.report.agreement is None
    assert apart(usual.model) > 1  # what lies between its layers is rounded differently
    result = transformer()
    assert result.report.quantized
    layers = result.report.layers
    assert sum(not layer.kept_float for layer in layers) > len(layers) / 4  # how many depends on the processor
    assert apart(result.model) <= 1
