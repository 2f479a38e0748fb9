# SPDX-License-Identifier: Apache-2.0
"""LpPool that rounds its size up: the last window holds what is there, and OpenVINO counts it as a whole one."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models


def norms(x: np.ndarray, kernel: int, stride: int, pads: tuple[int, int], p: int) -> np.ndarray:
    """Along the last axis, as MaxPool's documentation has the windows."""
    begin, end = pads
    size = x.shape[-1]
    count = -(-(size + begin + end - kernel) // stride) + 1
    count -= (count - 1) * stride >= size + begin
    spans = ((max(0, i * stride - begin), i * stride - begin + kernel) for i in range(count))
    return np.stack([(np.abs(x[..., a:b]) ** p).sum(-1) ** (1 / p) for a, b in spans], -1)


@pytest.mark.parametrize("size", [7, "n"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads"),
    [(3, 3, (0, 0)), (2, 2, (0, 0)), (3, 2, (1, 0)), (3, 2, (0, 1)), (2, 3, (1, 1))],
)
def test_the_last_window_holds_what_is_there(
    preset: type[omb.Preset], kernel: int, stride: int, pads: tuple[int, int], auto_pad: str, p: int, size: int | str
) -> None:
    if auto_pad == "VALID":
        pads = (0, 0)
    written = {"pads": list(pads)} if auto_pad == "NOTSET" else {"auto_pad": auto_pad}
    node = models.node("LpPool", ["x"], ["y"], ceil_mode=1, kernel_shape=[kernel], strides=[stride], p=p, **written)
    shapes = models.tensor("x", [1, 2, size]), models.tensor("y", [1, 2, None])
    model = models.model([node], [shapes[0]], [shapes[1]], opsets={"": 18})
    prepared = preset.prepare(model, fallback="full")
    x = np.random.default_rng(0).standard_normal((1, 2, 7)).astype(np.float32)
    for given in (x, x[..., :5], x) if size == "n" else (x,):
        np.testing.assert_allclose(prepared.run(given)[0], norms(given, kernel, stride, pads, p), rtol=1e-4, atol=1e-5)
