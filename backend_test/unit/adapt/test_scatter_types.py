# SPDX-License-Identifier: Apache-2.0
"""Reductions of ScatterElements and ScatterND whose kernels ONNX Runtime has for other types only, which it says in the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import onnx_multi_backend as omb
from backend_test.unit import models

REDUCTIONS: dict[str, Callable[..., Any]] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.bool_])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_a_reduction(engine: type[omb.Preset], operator: str, reduction: str, dtype: Any) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 5, 6).astype(dtype)
    updates = np.random.default_rng(1).integers(0, 2 if dtype is np.bool_ else 5, 4).astype(dtype)
    places = np.array([1, 1, 4, 0])
    right = x.copy()
    for place, update in zip(places, updates, strict=True):
        right[place] = REDUCTIONS[reduction](right[place], update)
    indices = places.reshape(-1, 1) if operator == "ScatterND" else places
    model = models.model(
        [models.node(operator, ["x", "i", "u"], ["y"], reduction=reduction)],
        [models.tensor("x", ["n"], kind), models.tensor("i", list(indices.shape), models.INT64)]
        + [models.tensor("u", [4], kind)],
        [models.tensor("y", None, kind)],
        opsets={"": 18},
    )
    (made,) = engine.prepare(model).run([x, indices, updates])
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, right)
