# SPDX-License-Identifier: Apache-2.0
"""Which models OpenVINO runs in the thread that calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models


def _outer(side: int) -> ModelProto:
    """Of small inputs a product of side by side."""
    values = [models.tensor("a", (side, 1)), models.tensor("b", (1, side))]
    return models.one_node("Mul", values, [models.tensor("y", (side, side))])


def _in_the_caller(model: ModelProto, preset: type[omb.Preset], **options: Any) -> bool:
    native = preset.prepare(model, **options)._session.native  # type: ignore[attr-defined]
    return str(native.get_property("EXCLUSIVE_ASYNC_REQUESTS")) == "YES"


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (models.relu((1, 64)), {}, True),
        (models.linear(), {}, False),  # of a batch that is not fixed
        (models.relu((1, 64)), {"performance_hint": "THROUGHPUT"}, False),
        (models.relu((1, 64)), {"INFERENCE_NUM_THREADS": 1}, False),
        (models.relu((300, 300)), {}, False),
        (_outer(100), {}, True),
        (_outer(300), {}, False),
    ],
)
def test_only_what_is_tiny_all_through(
    openvino: type[omb.Preset], model: ModelProto, options: dict[str, Any], expected: bool
) -> None:
    assert _in_the_caller(model, openvino, **options) is expected


def test_it_computes_what_others_do(openvino: type[omb.Preset]) -> None:
    a = np.arange(100, dtype=np.float32)
    for options in ({}, {"INFERENCE_NUM_THREADS": 2}):
        y = openvino.prepare(_outer(100), **options).run([a[:, None], a[None]])["y"]
        np.testing.assert_array_equal(y, np.outer(a, a))
