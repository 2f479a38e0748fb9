# SPDX-License-Identifier: Apache-2.0
"""What a failed run leaves behind: OpenVINO kept its sizes, and later valid runs failed or returned memory that was never written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Feeds, Session, Value
from onnx_multi_backend.engines.wrappers.renewed import RenewedSession
from onnx_multi_backend.errors import RunError

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: Sizes that only meet in a run.
CHOICE = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 17]> g (float[a, b] x, bool[e] c, float[f, g] y) => (float[p, q] z) {
    t = Transpose <perm = [1, 0]> (x) z = Where (c, t, y) }"""
)
#: Whose sizes are values.
SHAPED = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, int64[2] s, float[1, 3] y) => (float[a, b] z) {
    n = Neg (x) r = Reshape (n, s) z = Add (r, y) }"""
)
YES = np.array([True])


def numbers(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def fed(columns: int, *other: int) -> list[Array]:
    return [numbers(columns, 3), YES, numbers(*other)]


def check(prepared: omb.PreparedModel, columns: int, *other: int) -> None:
    expected = np.broadcast_to(numbers(columns, 3).T, np.broadcast_shapes((3, columns), other))
    np.testing.assert_array_equal(prepared.run(fed(columns, *other))[0], expected)


def test_later_runs_are_right(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(CHOICE, fallback="full")
    check(prepared, 2, 3, 2)
    for _ in range(2):
        for columns in (5, 4):
            with pytest.raises(RunError):
                prepared.run(fed(columns, 3, 2))
        check(prepared, 2, 1, 1)  # 3 rows of 5 before
        check(prepared, 2, 3, 2)  # an error before
        check(prepared, 4, 3, 4)


def test_so_they_are_in_run_many(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(CHOICE, fallback="full")
    assert len(list(prepared.run_many([fed(2, 3, 2)] * 40))) == 40
    with pytest.raises(RunError):
        list(prepared.run_many([fed(2, 3, 2), fed(5, 3, 2)]))
    for result in prepared.run_many([fed(2, 1, 1)] * 40):
        np.testing.assert_array_equal(result[0], numbers(2, 3).T)


def test_bound_runs_are_right_too(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(SHAPED, fallback="full")
    x, sizes, y = numbers(2, 3), np.array([2, 3]), numbers(1, 3)
    bound = prepared.bind([x, sizes, y])
    for _ in range(2):
        np.testing.assert_array_equal(bound.run()[0], y - x)
        bound.inputs["s"][:] = [3, 2]
        with pytest.raises(RunError):
            bound.run()
        bound.inputs["s"][:] = [2, 3]
        np.testing.assert_array_equal(prepared.run([x, sizes, y])[0], y - x)
        bound.inputs["x"][:] += 1
        np.testing.assert_array_equal(bound.run()[0], y - bound.inputs["x"])
        bound.inputs["x"][:] -= 1


def test_beside_other_threads(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(CHOICE, fallback="full")
    wrong: list[object] = []
    done = threading.Event()

    def fail() -> None:
        for _ in range(10):
            with pytest.raises(RunError):
                prepared.run(fed(5, 3, 2))
        done.set()

    def run() -> None:
        while not done.is_set():
            found = prepared.run(fed(2, 1, 1))[0]
            if found.shape != (3, 2) or not np.array_equal(found, numbers(2, 3).T):
                wrong.append(found)

    threads = [threading.Thread(target=target) for target in (fail, run, run)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.is_set()
    assert not wrong


def test_a_cached_session_is_made_anew(engine: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        prepared = engine.prepare(CHOICE, fallback="full", cache_dir=tmp_path)
        with pytest.raises(RunError):
            prepared.run(fed(5, 3, 2))
        check(prepared, 2, 1, 1)


def test_a_model_that_was_replaced_is_not_run(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(CHOICE, path)
    prepared = engine.prepare(path, fallback="full")
    check(prepared, 2, 3, 2)
    with pytest.raises(RunError):
        prepared.run(fed(5, 3, 2))
    path.unlink()
    if engine.name == "OrtCpu":
        check(prepared, 2, 3, 2)
        return
    for _ in range(2):
        with pytest.raises(RunError, match=r"earlier run failed.*Prepare the model again"):
            prepared.run(fed(2, 3, 2))


def test_the_session_that_did_not_fail_stays(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(CHOICE, fallback="full")
    before = prepared._session.native
    check(prepared, 2, 3, 2)
    check(prepared, 4, 1, 1)
    with pytest.raises(omb.InputError):
        prepared.run([numbers(2, 3), YES])
    assert prepared._session.native is before


class Failing(Session):
    """Fails as often as it is told, and others beside it."""

    spoilable, failures, serial = True, 0, True

    def __init__(self, fails: int = 0, others: int = 0) -> None:
        self.fails, self.others = fails, others
        self.inside: Callable[[], object] = lambda: None

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        inside, self.inside = self.inside, lambda: None
        inside()
        self.failures += self.others
        if self.fails:
            self.fails, self.failures = self.fails - 1, self.failures + 1
            raise RunError("sizes do not fit")
        return [self]

    def placement(self) -> tuple[NodePlacement, ...]:
        return ()


def test_a_run_within_a_run_of_its_thread_goes_on() -> None:
    """As a signal handler does it."""
    inner = Failing()
    session = RenewedSession(inner, Failing)
    inner.inside = lambda: session.run({}, None)
    assert session.run({}, None) == [inner]


def test_a_run_that_failed_beside_another_is_done_again() -> None:
    fresh = Failing()
    session = RenewedSession(Failing(fails=1, others=1), lambda: fresh)
    assert session.run({}, None) == [fresh]


def test_a_run_that_fails_by_itself_raises_and_the_next_one_has_a_new_session() -> None:
    fresh = Failing()
    session = RenewedSession(Failing(fails=1), lambda: fresh)
    with pytest.raises(RunError, match="sizes do not fit"):
        session.run({}, None)
    assert session.run({}, None) == [fresh]
    assert session.run({}, None) == [fresh]


def test_results_beside_a_failed_run_are_not_returned() -> None:
    fresh = Failing()
    session = RenewedSession(Failing(others=1), lambda: fresh)
    assert session.run({}, None) == [fresh]
