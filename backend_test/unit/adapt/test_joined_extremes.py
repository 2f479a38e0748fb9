# SPDX-License-Identifier: Apache-2.0
"""OpenVINO 2025.4 takes the largest element of two concatenated tensors for the larger of both."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed


@pytest.mark.parametrize("kind", ["float", "int32"])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("between", ["y = {} (e)", "f = Abs (e) y = {} (f)"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("first", ["3", "n"])
def test_of_two_tensors(
    preset: type[omb.Preset], kind: str, operator: str, between: str, axis: int, keepdims: int, first: str
) -> None:
    nodes = between.format(f"{operator} <axes = [{axis}], keepdims = {keepdims}>")
    result = "a, b" if keepdims else "a"
    model = parsed(
        f"({kind}[{first}, 4] x, {kind}[{first}, 4] z) => ({kind}[{result}] y) {{ e = Concat <axis = {axis}> (x, z) {nodes} }}"
    )
    rng = np.random.default_rng(0)
    dtype = np.float32 if kind == "float" else np.int32
    x, z = (rng.integers(-50, 50, (3, 4)).astype(dtype) for _ in range(2))
    joined = np.concatenate([x, z], axis)
    joined = np.abs(joined) if "Abs" in nodes else joined
    right = (np.max if operator == "ReduceMax" else np.min)(joined, axis=axis, keepdims=bool(keepdims))
    (made,) = preset.prepare(model, fallback="full").run([x, z])
    np.testing.assert_array_equal(made, right)
