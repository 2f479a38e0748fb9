# SPDX-License-Identifier: Apache-2.0
"""The second run and the ones after it: engines keep what the first one made ready, and nobody notices."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

INT64, STRING = TensorProto.INT64, TensorProto.STRING


def test_an_output_may_change_its_shape_from_run_to_run(preset: type[omb.Preset]) -> None:
    outputs = [models.tensor("y", [1, "K"], INT64)]
    rep = preset.prepare(models.one_node("NonZero", [models.tensor("x", (3,))], outputs), fallback="full")
    for x, y in (([0, 1, 2], [1, 2]), ([1, 1, 1], [0, 1, 2]), ([0, 0, 0], []), ([1, 0, 0], [0]), ([0, 1, 2], [1, 2])):
        assert rep.run(np.float32(x))["y"].tolist() == [y]


def test_a_default_may_be_given_in_some_runs_only(ort_cpu: type[omb.Preset]) -> None:
    graph = helper.make_graph(
        [models.node("Add", ["x", "d"], ["y"])],
        "defaults",
        [models.tensor("x", (1, 3)), models.tensor("d", (1, 3))],
        [models.tensor("y", (1, 3))],
        [numpy_helper.from_array(np.full((1, 3), 10, np.float32), "d")],
    )
    rep = ort_cpu.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    x = np.float32([[1, 2, 3]])
    for _ in range(3):
        np.testing.assert_array_equal(rep.run(x)["y"], x + 10)
        np.testing.assert_array_equal(rep.run({"x": x, "d": x})["y"], x + x)


def test_run_options_work_in_any_run(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.relu((1, 3)))
    x = np.float32([[-1, 2, 3]])
    for _ in range(3):
        assert rep.run(x, log_severity_level=3)["y"].tolist() == rep.run(x)["y"].tolist() == [[0, 2, 3]]
    with pytest.raises(omb.OptionError):
        rep.run(x, no_such_option=1)


@pytest.mark.parametrize("layout", ["strided", "readonly", "fortran"])
def test_any_layout_will_do_in_any_run(preset: type[omb.Preset], layout: str) -> None:
    rep = preset.prepare(models.relu((4, 6)))
    plain = np.arange(24, dtype=np.float32).reshape(4, 6) - 12
    given = {
        "strided": np.repeat(plain, 2, axis=1)[:, ::2],
        "readonly": plain.copy(),
        "fortran": np.asfortranarray(plain),
    }
    given["readonly"].flags.writeable = False
    for x in (plain, given[layout], plain, given[layout]):
        np.testing.assert_array_equal(rep.run(x)["y"], np.maximum(plain, 0))


def test_results_are_never_changed_later(preset: type[omb.Preset]) -> None:
    made = helper.make_graph(
        [models.node("Relu", ["x"], ["y"]), models.node("Identity", ["y"], ["z"], name="copy")],
        "twice",
        [models.tensor("x", (1, 3))],
        [models.tensor("y", (1, 3)), models.tensor("z", (1, 3))],
    )
    rep = preset.prepare(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    kept = [rep.run(np.full((1, 3), i, np.float32)) for i in range(20)]
    for i, (y, z) in enumerate(kept):
        assert (y == i).all()
        assert (z == i).all()
        y[...] = -1
    assert all((z == i).all() for i, (_, z) in enumerate(kept))
    assert (rep.run(np.full((1, 3), 7, np.float32))["y"] == 7).all()


@pytest.mark.parametrize("shape", [(1, 256), ("N", 256)])
def test_eight_threads_and_twenty_thousand_runs(preset: type[omb.Preset], shape: tuple[int | str, int]) -> None:
    rep = preset.prepare(models.relu(shape))
    bases = [np.full((1, 256), i, np.float32) for i in range(250)]

    def work(thread: int) -> bool:
        kept = []
        for i in range(2500):
            x = bases[(i * 7 + thread) % 250]
            y = rep.run(x if i % 2 else [x])[0]
            if not np.array_equal(y, x):
                return False
            if i % 50 == 0:
                kept.append((x, y))
        return all(np.array_equal(x, y) for x, y in kept)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))

        def growth() -> int:
            before = _resident()
            assert all(pool.map(work, range(8)))
            return _resident() - before

        # Allocators grow in bursts, then not at all; 50 bytes kept of each run would be a MiB every time.
        assert any(growth() < 1024 * 1024 for _ in range(10))


def _resident() -> int:
    """Bytes of memory that this process holds."""
    if not sys.platform.startswith("linux"):
        pytest.skip("resident memory is read from /proc")
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # what is free, glibc gives back
        trim(0)
    with open("/proc/self/statm", encoding="ascii") as status:
        return int(status.read().split()[1]) * os.sysconf("SC_PAGESIZE")
