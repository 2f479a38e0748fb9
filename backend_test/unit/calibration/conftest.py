# SPDX-License-Identifier: Apache-2.0
"""All of this needs ONNX Runtime, whose quantization tools it is built on."""

from __future__ import annotations

import pytest

import onnx_multi_backend as omb


@pytest.fixture(autouse=True)
def onnx_runtime(ort_cpu: type[omb.Preset], short_turns: None) -> type[omb.Preset]:
    return ort_cpu
