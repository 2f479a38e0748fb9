# SPDX-License-Identifier: Apache-2.0
"""An engine that compiles for fixed shapes, in several threads: who runs known shapes does not wait for a new one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort.target import OrtTarget

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


def test_who_waited_for_a_compilation_that_failed_tries_it_again(preset: type[omb.Preset], gate: Gate) -> None:
    rep = preset.prepare(models.relu(), input_example=batch(1))
    gate.fails = 1
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(rep.run, batch(2)) for _ in range(2)]
        assert gate.started.wait(SOON)
        gate.open.set()
        errors = [run.exception(SOON) for run in runs]
    assert [type(error) for error in errors if error] == [omb.UnsupportedModelError]
    assert rep.run(batch(2))[0].shape == (2, 3)
    assert gate.rows.count(2) == 2
