# SPDX-License-Identifier: Apache-2.0
"""Models of float16 whose optimization would end ONNX Runtime's process."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

WEIGHTS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float16)


def transposed(perm: list[int], *, constant: bool = False) -> bytes:
    """A linear layer behind a Transpose, its weights an initializer or a Constant."""
    rank = len(perm)
    node = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(WEIGHTS))
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=perm),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    made = models.model(
        [node, *nodes] if constant else nodes,
        [models.tensor("x", [None] * rank, TensorProto.FLOAT16)],
        [models.tensor("y", [None] * rank, TensorProto.FLOAT16)],
        initializers={} if constant else {"w": WEIGHTS},
    )
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("perm", [[1, 0, 2], [1, 2, 0], [1, 2, 0, 3], [1, 2, 3, 0]])
def test_a_half_linear_layer_behind_a_transpose_runs(
    ort_cpu: type[omb.Preset], perm: list[int], constant: bool
) -> None:
    prepared = ort_cpu.prepare(transposed(perm, constant=constant))
    sizes = [0] * len(perm)
    for axis, size in zip(perm, (2, 3, 5, 8)[-len(perm) :], strict=True):
        sizes[axis] = size
    x = np.random.default_rng(1).normal(size=sizes).astype(np.float16)
    right = x.transpose(perm).astype(np.float32) @ WEIGHTS.astype(np.float32)
    np.testing.assert_allclose(prepared.run(x)[0], right, rtol=1e-2, atol=1e-2)
