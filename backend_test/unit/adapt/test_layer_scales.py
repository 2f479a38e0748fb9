# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization by a scale and a bias that broadcast over normalized axes, which OpenVINO refuses, in open sizes when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit import models

SHAPE = (2, 3, 5)


@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "deviation"]], ids=len)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "fixed"])
@pytest.mark.parametrize("bias", [[5], [3, 5], None], ids=str)
@pytest.mark.parametrize("scale", [[5], [3, 5], [2, 3, 5]], ids=str)
@pytest.mark.parametrize("axis", [-3, 0, 1, -1])
def test_scales_of_other_axes(
    preset: type[omb.Preset], axis: int, scale: list[int], bias: list[int] | None, is_open: bool, outputs: list[str]
) -> None:
    rng = np.random.default_rng(0)
    shapes: dict[str, Any] = {"x": SHAPE, "scale": scale, **({"bias": bias} if bias else {})}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    made = models.model(
        [models.node("LayerNormalization", list(shapes), outputs, axis=axis)],
        [
            models.tensor(name, [f"{name}{i}" if is_open else n for i, n in enumerate(shape)])
            for name, shape in shapes.items()
        ],
        [models.tensor(name, None) for name in outputs],
        opsets={"": 17},
    )
    found = preset.prepare(made, fallback="full").run(feeds)
    for mine, right in zip(found, ReferenceEvaluator(made).run(None, feeds), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-5)


def test_a_scale_of_the_last_axis_stays(openvino: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("LayerNormalization", ["x", "scale"], ["y"], axis=2)],
        [models.tensor("x", ["a", "b", 5]), models.tensor("scale", [5])],
        [models.tensor("y", None)],
        opsets={"": 17},
    )
    assert openvino.prepare(made).adaptations == ()
