# SPDX-License-Identifier: Apache-2.0
"""A prepared model that nobody holds any more is gone at once, with its session, its weights and its threads."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit.models import one_node, tensor


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("adapt", [True, False])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.BFLOAT16])
def test_a_session_does_not_wait_for_the_garbage_collector(
    preset: type[omb.Preset], elem_type: int, adapt: bool
) -> None:
    model = one_node(
        "Reshape",
        [tensor("x", (2, 3), elem_type), tensor("s", (1,), TensorProto.INT64)],
        [tensor("y", (6,), elem_type)],
    )
    prepared = preset.prepare(model, adapt=adapt, fallback="full")
    prepared.run([np.ones((2, 3), prepared.get_inputs()[0].dtype), np.array([6])])
    session = weakref.ref(prepared._session)
    del prepared
    assert session() is None
