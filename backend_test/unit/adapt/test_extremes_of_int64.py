# SPDX-License-Identifier: Apache-2.0
"""The smallest and the largest int64 along an axis, alone in a model: OpenVINO's provider got halves that int32 does not hold."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


@pytest.mark.parametrize("sizes", ["3, 4", "n, m"])
@pytest.mark.parametrize(("operator", "right"), [("ReduceMin", np.min), ("ReduceMax", np.max)])
def test_extremes_of_int64(preset: type[omb.Preset], sizes: str, operator: str, right: np.ufunc) -> None:
    model = parsed(f"(int64[{sizes}] x) => (int64[k] y) {{ y = {operator} <axes = [0], keepdims = 0> (x) }}")
    prepared = preset.prepare(model, fallback="full")
    for first in (-4, 0, -(2**31)):
        x = np.arange(first, first + 12).reshape(3, 4)
        np.testing.assert_array_equal(prepared.run([x])[0], right(x, axis=0))
