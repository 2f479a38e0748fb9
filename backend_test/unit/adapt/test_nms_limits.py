# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression of as many boxes as there are: torchvision writes the largest int64."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed


@pytest.mark.parametrize("most", [2**63 - 1, 2**31, 2])
def test_the_number_of_boxes(preset: type[omb.Preset], most: int) -> None:
    model = parsed(
        f"(float[1, n, 4] b, float[1, 1, n] s) => (int64[k, 3] y) <int64[1] m = {{{most}}}, float[1] i = {{0.5}}> {{ y = NonMaxSuppression (b, s, m, i) }}"
    )
    boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 1.1], [5, 5, 6, 6], [8, 8, 9, 9]]])
    found = preset.prepare(model, fallback="full").run([boxes, np.float32([[[0.9, 0.8, 0.7, 0.6]]])])[0]
    np.testing.assert_array_equal(found[:, 2], [0, 2, 3][:most])
