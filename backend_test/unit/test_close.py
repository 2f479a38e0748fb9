# SPDX-License-Identifier: Apache-2.0
"""A model that is closed lets go of its engine, and says so to whoever runs it; in a process of its own or not."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

A, B = np.float32([[1, 2, 3]]), np.float32([[10, 20, 40]])
USES: dict[str, Callable[[Any], Any]] = {
    "run": lambda rep: rep.run([A, B]),
    "run by names": lambda rep: rep.run(None, [A, B]),
    "output_device": lambda rep: rep.run([A, B], output_device="CPU"),
    "bind": lambda rep: rep.bind([A.copy(), B.copy()]),
    "run_many": lambda rep: next(rep.run_many([[A, B]])),
    "placement": lambda rep: rep.placement(),
    "get_providers": lambda rep: rep.get_providers(),
    "get_provider_options": lambda rep: rep.get_provider_options(),
    "end_profiling": lambda rep: rep.end_profiling(),
}


@pytest.fixture(params=[False, True], ids=["here", "isolated"])
def prepared(request: pytest.FixtureRequest, engine: type[omb.Preset]) -> omb.PreparedModel:
    return engine.prepare(models.subtract(), isolate=request.param)


def test_a_closed_model_says_so(prepared: omb.PreparedModel) -> None:
    bound = prepared.bind([A.copy(), B.copy()])
    prepared.placement()
    result = prepared.run([A, B])
    prepared.close()
    prepared.close()
    for use in USES.values():
        with pytest.raises(omb.RunError, match=f"^{prepared.preset}: .* was closed. Prepare it again.$"):
            use(prepared)
    with pytest.raises(omb.RunError, match="was closed"):
        bound.run()
    np.testing.assert_array_equal(result[0], A - B)
    assert [i.name for i in prepared.get_inputs()]
    assert prepared.preset in repr(prepared)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(prepared)).run([A, B])[0], A - B)


def test_a_with_block_closes_the_model(prepared: omb.PreparedModel) -> None:
    with prepared as same:
        assert same is prepared
        np.testing.assert_array_equal(same.run([A, B])[0], A - B)
    with pytest.raises(omb.RunError, match="was closed"):
        prepared.run([A, B])


def test_the_engine_is_let_go_of(engine: type[omb.Preset]) -> None:
    rep = engine.prepare(models.subtract())
    bound = rep.bind([A.copy(), B.copy()])
    session = weakref.ref(rep._session)
    rep.close()
    assert session() is None
    assert bound.outputs


def test_closing_ends_a_stream_of_batches(engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_multi_backend.running.streaming.WORTH_A_THREAD", 0.0)
    rep = engine.prepare(models.subtract())
    stream = rep.run_many(([A, B] for _ in range(100)), in_flight=2)
    for _ in range(8):
        next(stream)
    rep.close()
    with pytest.raises(omb.RunError, match="was closed"):
        list(stream)


def test_other_providers_do_not_open_a_closed_model(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.subtract())
    rep.close()
    with pytest.raises(omb.RunError, match="was closed"):
        rep.set_providers(["CPUExecutionProvider"])


def test_sessions_for_fixed_shapes_are_let_go_of_too(engine: type[omb.Preset]) -> None:
    class Fixed(engine):  # type: ignore[misc, valid-type]
        fixed_shapes = True

    rep = Fixed.prepare(models.subtract())
    rep.run([A, B])
    kept = rep._sessions.by_shape
    sessions = [weakref.ref(built.session) for built in kept._kept.values()]
    del kept
    rep.close()
    assert sessions
    assert all(session() is None for session in sessions)
    with pytest.raises(omb.RunError, match="was closed"):
        rep.run([A, B])
