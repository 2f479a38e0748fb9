# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose whose output has a given shape: OpenVINO took the pads of the two sides for one another where they differ."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

X = np.random.default_rng(4).normal(size=(1, 2, 4, 3)).astype(np.float32)
W = np.random.default_rng(5).normal(size=(2, 3, 3, 2)).astype(np.float32)
BIAS = np.float32([1, -2, 3])


def right(wanted: tuple[int, int], strides: tuple[int, int], *, upper: bool) -> np.ndarray:
    sizes = [strides[0] * 3 + 3, strides[1] * 2 + 2]
    whole = np.zeros((1, 3, *sizes), np.float32)
    for row in range(4):
        for column in range(3):
            top, left = row * strides[0], column * strides[1]
            whole[:, :, top : top + 3, left : left + 2] += np.einsum("nc,cohw->nohw", X[:, :, row, column], W)
    totals = [max(0, size - want) for size, want in zip(sizes, wanted, strict=True)]
    begins = [total // 2 if upper else total - total // 2 for total in totals]
    made = np.zeros((1, 3, *wanted), np.float32)
    cut = whole[:, :, begins[0] : begins[0] + wanted[0], begins[1] : begins[1] + wanted[1]]
    made[:, :, : cut.shape[2], : cut.shape[3]] = cut
    return made + BIAS[:, None, None]


@pytest.mark.parametrize("shape", [[1, 2, 4, 3], ["n", 2, "h", "w"], [1, 2, "h", 3]], ids=str)
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    ("wanted", "strides"),
    [((5, 4), (1, 1)), ((5, 3), (1, 1)), ((6, 4), (1, 1)), ((8, 6), (2, 2)), ((9, 5), (2, 2)), ((10, 5), (2, 2))],
)
def test_each_element_is_where_it_belongs(
    preset: type[omb.Preset],
    wanted: tuple[int, int],
    strides: tuple[int, int],
    auto_pad: str,
    shape: list[int | str | None],
) -> None:
    node = models.node("ConvTranspose", ["x", "w", "b"], ["y"], output_shape=wanted, strides=strides, auto_pad=auto_pad)
    model = models.model(
        [node],
        [models.tensor("x", shape)],
        [models.tensor("y", None)],
        initializers={"w": W, "b": BIAS},
        opsets={"": 17},
    )
    found = preset.prepare(model, fallback="full").run([X])[0]
    np.testing.assert_allclose(found, right(wanted, strides, upper=auto_pad == "SAME_UPPER"), rtol=1e-4, atol=1e-5)
