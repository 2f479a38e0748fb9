# SPDX-License-Identifier: Apache-2.0
"""AffineGrid, written as its function body: onnx's own takes no batch of 1."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, expected, rewritten


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("sizes", [(3, 1, 2, 4), (1, 2, 2, 2), (2, 1, 2, 3), (1, 1, 2, 3, 2), (2, 1, 2, 2, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_any_batch(align: int, sizes: tuple[int, ...], known: bool, ort_cpu: type[omb.Preset]) -> None:
    axes = len(sizes) - 2
    theta = np.random.default_rng(3).normal(size=(sizes[0], axes, axes + 1)).astype(np.float32)
    size = np.int64(sizes)
    model = models.model(
        [models.node("AffineGrid", ["theta", "size"], ["y"], align_corners=align)],
        [models.tensor("theta", (None, axes, axes + 1)), *([] if known else [models.tensor("size", (axes + 2,), 7)])],
        [models.tensor("y", None)],
        initializers={"size": size} if known else {},
        opsets={"": 20},
        ir_version=10,
    )
    given = [theta] if known else [theta, size]
    with_body, changes = rewritten(model, "AffineGrid")
    assert {change.pass_name for change in changes} == {"expand_function"}
    np.testing.assert_allclose(computed(with_body, *given)[0], expected(model, *given)[0], rtol=1e-5, atol=1e-5)
