# SPDX-License-Identifier: Apache-2.0
"""Streams of batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.running import streaming


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each run took long."""
    monkeypatch.setattr(streaming, "WORTH_A_THREAD", -1.0)


def _batches(count: int) -> Iterator[np.ndarray]:
    return (np.full((1 + i % 3, 3), i - 5, np.float32) for i in range(count))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("in_flight", [None, 1, 3])
def test_results_come_in_order(preset: type[omb.Preset], in_flight: int | None) -> None:
    results = preset.prepare(models.relu()).run_many(_batches(100), in_flight)
    for x, y in zip(_batches(100), results, strict=True):
        np.testing.assert_array_equal(y["y"], np.maximum(x, 0))


def test_short_runs_go_on_as_a_loop(engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "WORTH_A_THREAD", 60.0)
    rep = engine.prepare(models.relu())
    before, seen = threading.active_count(), set()
    for x, y in zip(_batches(100), rep.run_many(_batches(100), 8), strict=True):
        np.testing.assert_array_equal(y["y"], np.maximum(x, 0))
        seen.add(threading.active_count())
    assert seen == {before}
    assert rep._sessions.many is None, "no second session was made"


def test_two_long_runs_make_no_threads(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "WORTH_A_THREAD", 0.05)
    rep, pauses = ort_cpu.prepare(models.relu()), iter([0.1, 0.1, *[0.0] * 48])

    def run(x: np.ndarray) -> object:
        time.sleep(next(pauses))
        return rep.run(x)

    assert len(list(streaming.stream(run, _batches(50), lambda: pytest.fail("threads")))) == 50


@pytest.mark.usefixtures("threads")
def test_no_more_is_read_than_is_under_way(preset: type[omb.Preset]) -> None:
    read = 0

    def batches() -> Iterator[np.ndarray]:
        nonlocal read
        for x in _batches(1000):
            read += 1
            yield x

    stream = preset.prepare(models.relu()).run_many(batches(), in_flight=4)
    assert read == 0
    for taken in range(1, 10):
        next(stream)
        assert read <= taken + 4
    before = threading.active_count()
    stream.close()  # type: ignore[attr-defined]
    assert read <= 13
    assert threading.active_count() < before


@pytest.mark.usefixtures("threads")
def test_an_error_comes_in_its_place_and_ends_the_stream(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(models.relu())
    stream = rep.run_many([np.ones((1, 3), np.float32), np.ones((1, 4), np.float32), np.ones((1, 3), np.float32)])
    assert next(stream)[0].shape == (1, 3)
    with pytest.raises(omb.InputError, match="dimension 1 is 4"):
        next(stream)
    assert list(stream) == []
    assert rep.run(np.ones((1, 3), np.float32))[0].shape == (1, 3)


@pytest.mark.usefixtures("threads")
def test_an_error_of_the_iterable_is_the_callers(preset: type[omb.Preset]) -> None:
    def batches() -> Iterator[np.ndarray]:
        yield from _batches(3)
        raise OSError("the disk is gone")

    for in_flight in (1, 2, 8):
        stream = preset.prepare(models.relu()).run_many(batches(), in_flight)
        for x in _batches(3):
            np.testing.assert_array_equal(next(stream)[0], np.maximum(x, 0))
        with pytest.raises(OSError, match="the disk is gone"):
            next(stream)


@pytest.mark.parametrize("in_flight", [0, -1, True, 1.5, "2"])
def test_in_flight_is_checked_at_once(ort_cpu: type[omb.Preset], in_flight: object) -> None:
    with pytest.raises(omb.OptionError, match="in_flight is a number of batches"):
        ort_cpu.prepare(models.relu()).run_many([], in_flight)  # type: ignore[arg-type]


def test_what_cannot_be_read_one_by_one_is_refused_at_once(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="an iterable of batches, int given"):
        ort_cpu.prepare(models.relu()).run_many(5)  # type: ignore[arg-type]


@pytest.mark.usefixtures("threads")
def test_any_number_may_be_in_flight(ort_cpu: type[omb.Preset]) -> None:
    before = threading.active_count()
    stream = ort_cpu.prepare(models.relu()).run_many(_batches(2000), in_flight=10**30)
    next(stream)
    assert threading.active_count() - before <= 64
    assert len(list(stream)) == 1999


@pytest.mark.usefixtures("threads")
def test_a_single_run_keeps_its_own_session(openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(models.relu())
    list(rep.run_many(_batches(5)))
    native = rep._session.native  # type: ignore[attr-defined]
    assert str(native.get_property("PERFORMANCE_HINT")).endswith("LATENCY")
    many = rep._sessions.many.native  # type: ignore[union-attr]
    assert str(many.get_property("PERFORMANCE_HINT")).endswith("THROUGHPUT")


@pytest.mark.usefixtures("threads")
def test_engines_for_fixed_shapes_stream_too(engine: type[omb.Preset]) -> None:
    class Fixed(engine):  # type: ignore[misc, valid-type]
        name = "Fixed"
        fixed_shapes = True

    for x, y in zip(_batches(12), Fixed.prepare(models.relu()).run_many(_batches(12)), strict=True):
        np.testing.assert_array_equal(y[0], np.maximum(x, 0))
