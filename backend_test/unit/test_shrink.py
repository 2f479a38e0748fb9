# SPDX-License-Identifier: Apache-2.0
"""Shrink of integers beyond 2**24, which ONNX Runtime computes in float32."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64"])
@pytest.mark.parametrize(("limit", "bias"), [(0.5, 0), (1.5, 1), (3.0, -2)])
def test_integers_are_exact(ort_cpu: type[omb.Preset], kind: str, limit: float, bias: int) -> None:
    model = parsed(f"({kind}[n] x) => ({kind}[n] y) {{ y = Shrink <lambd = {limit}, bias = {float(bias)}> (x) }}", 19)
    x = np.array([0, 1, 2, 3, 4, 2**24 - 1, 2**24 + 1, 2**25 + 3, 2**31 - 5], kind)
    right = np.where(x > limit, x - np.array(bias).astype(kind), np.array(0, kind))
    np.testing.assert_array_equal(ort_cpu.prepare(model).run(x)[0], right)


def test_small_ones_stay_on_the_engines_own_kernel(ort_cpu: type[omb.Preset]) -> None:
    model = parsed("(int16[n] x) => (int16[n] y) { y = Shrink <lambd = 1.5, bias = 1.0> (x) }", 19)
    prepared = ort_cpu.prepare(model)
    np.testing.assert_array_equal(prepared.run(np.int16([-32768, -1, 0, 2, 32767]))[0], [-32767, 0, 0, 1, 32766])
    assert prepared.adaptations == ()
