# SPDX-License-Identifier: Apache-2.0
"""An engine that compiles for fixed shapes, in several threads: who runs known shapes does not wait for a new one."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.engines.session import Built
from onnx_multi_backend.sessions import by_shape
from onnx_multi_backend.sessions.by_shape import SessionsByShape

#: Seconds in which anything here happens, however slow the machine.
SOON = 60.0


class Gate:
    """What a slow compiler does: it starts, and it ends when it is let."""

    def __init__(self) -> None:
        self.started, self.open = threading.Event(), threading.Event()
        self.rows: list[int] = []
        self.fails = 0


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def preset(ort_cpu: type[omb.Preset], gate: Gate) -> type[omb.Preset]:
    """OrtCpu as an engine that compiles for fixed shapes; those of more than one row wait at the gate."""

    class Slow(OrtTarget):
        def build(self, payload: Any) -> Any:
            rows = payload.shapes["x"][0] if payload.shapes else 1
            gate.rows.append(rows)
            if rows > 1:
                gate.started.set()
                assert gate.open.wait(SOON)
                if gate.fails:
                    gate.fails -= 1
                    raise omb.UnsupportedModelError("out of memory")
            return super().build(payload)

    class Fixed(ort_cpu):  # type: ignore[misc, valid-type]
        name = "Fixed"
        fixed_shapes = True

        @classmethod
        def make_target(cls, settings: Any, device: Any, loaded: Any) -> Any:
            made = super().make_target(settings, device, loaded)
            return Slow(**{f: getattr(made, f) for f in made.__dataclass_fields__})

    return Fixed


def batch(rows: int) -> np.ndarray:
    return np.full((rows, 3), -1.0, np.float32)


def test_runs_of_known_shapes_go_on_while_a_new_one_is_compiled(preset: type[omb.Preset], gate: Gate) -> None:
    rep = preset.prepare(models.relu(), input_example=batch(1))
    with ThreadPoolExecutor(2) as pool:
        new = pool.submit(rep.run, batch(2))
        assert gate.started.wait(SOON)
        known = pool.submit(rep.run, batch(1))
        try:
            assert known.result(SOON)[0].shape == (1, 3)
            assert not new.done()
        finally:
            gate.open.set()
        assert new.result(SOON)[0].shape == (2, 3)


def test_threads_with_the_same_new_shape_compile_it_once(preset: type[omb.Preset], gate: Gate) -> None:
    rep = preset.prepare(models.relu(), input_example=batch(1))
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(rep.run, batch(2)) for _ in range(4)]
        assert gate.started.wait(SOON)
        gate.open.set()
        assert {run.result(SOON)[0].shape for run in runs} == {(2, 3)}
    assert gate.rows.count(2) == 1


def test_a_thread_that_comes_as_another_ends_compiling_takes_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other one compiles is kept between this one's first look and its own compiling."""
    compiled: list[Any] = []

    def compile_for(shapes: Any) -> Built:
        compiled.append(shapes)
        return Built(None)  # type: ignore[arg-type]

    sessions = SessionsByShape(compile_for)
    others: list[Built] = []

    class Late(Future):  # type: ignore[type-arg]
        def __init__(self) -> None:
            super().__init__()
            if not others:
                others.append(Built(None))  # type: ignore[arg-type]
                others[0] = sessions.get({"x": (2, 3)})

    monkeypatch.setattr(by_shape, "Future", Late)
    assert sessions.get({"x": (2, 3)}) is others[0]
    assert len(compiled) == 1


def test_a_compilation_that_fails_fails_for_all_who_waited_and_is_tried_again(
    preset: type[omb.Preset], gate: Gate
) -> None:
    rep = preset.prepare(models.relu(), input_example=batch(1))
    gate.fails = 1
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(rep.run, batch(2))
        assert gate.started.wait(SOON)
        second = pool.submit(rep.run, batch(2))
        gate.open.set()
        assert isinstance(first.exception(SOON), omb.UnsupportedModelError)
        assert second.exception(SOON) is None or isinstance(second.exception(SOON), omb.UnsupportedModelError)
    assert rep.run(batch(2))[0].shape == (2, 3)
    assert gate.rows.count(2) == 2


def test_shapes_that_fail_push_out_no_session(preset: type[omb.Preset], gate: Gate) -> None:
    rep = preset.prepare(models.relu(), input_example=batch(1))
    gate.open.set()
    gate.fails = 5
    for rows in range(2, 7):
        with pytest.raises(omb.UnsupportedModelError):
            rep.run(batch(rows))
    rep.run(batch(1))
    assert gate.rows.count(1) == 1


def test_an_interrupted_compilation_leaves_nobody_waiting() -> None:
    interrupted = False

    def compile_for(shapes: Any) -> Any:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise KeyboardInterrupt
        return shapes

    sessions = SessionsByShape(compile_for)
    with pytest.raises(KeyboardInterrupt):
        sessions.get({"x": (1,)})
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(sessions.get, {"x": (1,)}).result(SOON) == {"x": (1,)}


def test_five_new_shapes_at_once_are_compiled_once_each() -> None:
    lock, compiled, start = threading.Lock(), [], threading.Barrier(10)

    def compile_for(shapes: Any) -> Any:
        with lock:
            compiled.append(shapes["x"])
        time.sleep(0.2)
        return shapes

    def get(rows: int) -> Any:
        start.wait(SOON)
        return sessions.get({"x": (rows,)})

    sessions = SessionsByShape(compile_for)
    with ThreadPoolExecutor(10) as pool:
        assert [made["x"] for made in pool.map(get, [*range(5), *range(5)])] == [(i,) for i in [*range(5), *range(5)]]
    assert len(compiled) <= 6  # of the five four are kept: one may be wanted after it was pushed out
