# SPDX-License-Identifier: Apache-2.0
"""A prepared model serves several threads, and travels to other processes."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.float32([[1, 2, 3]])


def test_eight_threads_get_their_own_results(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(models.relu(["N", "M"]))
    rng = np.random.default_rng(0)
    jobs = [rng.standard_normal((1 + i % 7, 1 + i % 5 * 100)).astype(np.float32) for i in range(200)]

    def work(x: np.ndarray) -> np.ndarray:
        return rep.run({"x": x} if x.shape[0] % 2 else x)[0]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, jobs))
    for x, y in zip(jobs, results, strict=True):
        np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_eight_threads_with_new_shapes_on_an_engine_for_fixed_shapes(engine: type[omb.Preset]) -> None:
    class Fixed(engine):  # type: ignore[misc, valid-type]
        name = "Fixed"
        fixed_shapes = True

    rep = Fixed.prepare(models.relu())
    jobs = [np.full((1 + i % 6, 3), i - 10, np.float32) for i in range(24)]  # more shapes than are kept
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: rep.run(x)[0], jobs))
    for x, y in zip(jobs, results, strict=True):
        np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_threads_that_fail_do_not_disturb_the_others(engine: type[omb.Preset]) -> None:
    made = models.one_node("Add", [models.tensor("a", ["N"]), models.tensor("b", ["M"])], [models.tensor("y", ["K"])])
    rep = engine.prepare(made)

    def work(i: int) -> Any:
        a = np.full(2, i, np.float32)
        if i % 3 == 0:
            with pytest.raises(omb.RunError):
                rep.run([a, np.zeros(5, np.float32)])
            return None
        return rep.run([a, a])[0]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(60)))
    for i, result in enumerate(results):
        assert result is None if i % 3 == 0 else result.tolist() == [2 * i, 2 * i]


def _given(form: str, folder: Path) -> Any:
    made = models.linear()
    if form == "proto":
        return made
    if form == "bytes":
        return made.SerializeToString()
    path = folder / "model.onnx"
    if form == "path":
        onnx.save(made, path)
    else:
        onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


@pytest.mark.parametrize("form", ["path", "bytes", "proto", "path with external data"])
def test_a_pickle_prepares_the_model_again(preset: type[omb.Preset], tmp_path: Path, form: str) -> None:
    rep = preset.prepare(_given(form, tmp_path), input_example=X)
    again = pickle.loads(pickle.dumps(rep))
    assert again is not rep
    assert (again.preset, again.device, again.provider) == (rep.preset, rep.device, rep.provider)
    assert again.get_inputs() == rep.get_inputs()
    np.testing.assert_array_equal(again.run(X)[0], rep.run(X)[0])


def test_a_pickle_keeps_the_options(ort_cpu: type[omb.Preset]) -> None:
    rep = pickle.loads(pickle.dumps(omb.OrtCpuBackend(models.relu(), 1, 3)))
    assert rep._session.native.get_session_options().intra_op_num_threads == 3


def test_a_pickle_is_not_changed_by_a_later_change_of_the_proto(ort_cpu: type[omb.Preset]) -> None:
    made = models.relu()
    rep = ort_cpu.prepare(made)
    made.graph.node[0].op_type = "Neg"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rep)).run(X)[0], X)


def test_a_copy_is_prepared_again(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.relu())
    np.testing.assert_array_equal(copy.deepcopy(rep).run(-X)[0], np.zeros_like(X))


def _in_another_process(rep: omb.PreparedModel) -> Any:
    return rep.run(X)[0]


def test_a_model_travels_to_another_process(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.linear())
    with get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(_in_another_process, (rep,)), rep.run(X)[0])


def test_results_can_be_pickled(ort_cpu: type[omb.Preset]) -> None:
    result = ort_cpu.prepare(models.relu()).run(X)
    np.testing.assert_array_equal(tuple(pickle.loads(pickle.dumps(tuple(result))))[0], X)


def test_native_session_options_cannot_be_pickled_and_the_error_says_what_to_do(ort_cpu: type[omb.Preset]) -> None:
    import onnxruntime

    rep = omb.OrtBackend(models.relu(), "CPUExecutionProvider", None, onnxruntime.SessionOptions())
    with pytest.raises((omb.OnnxMultiBackendError, TypeError), match="(?i)SessionOptions.*mapping"):
        pickle.dumps(rep)


def test_a_mapping_of_session_options_can_be_pickled(ort_cpu: type[omb.Preset]) -> None:
    rep = omb.OrtBackend(models.relu(), "CPUExecutionProvider", None, {"intra_op_num_threads": 1})
    again = pickle.loads(pickle.dumps(rep))
    assert again._session.native.get_session_options().intra_op_num_threads == 1
