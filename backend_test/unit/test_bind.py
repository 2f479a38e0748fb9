# SPDX-License-Identifier: Apache-2.0
"""Runs on fixed buffers."""

from __future__ import annotations

import gc
import operator
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.running.bound import BoundRun

A, B = np.float32([[1, 2, 3]]), np.float32([[10, 20, 40]])


def test_a_run_reads_the_input_buffers_and_overwrites_the_outputs(preset: type[omb.Preset]) -> None:
    bound = preset.prepare(models.subtract()).bind([A.copy(), B.copy()])
    names = list(bound.inputs)
    first = bound.run()
    np.testing.assert_array_equal(first[0], A - B)
    bound.inputs[names[0]][...] = 7
    second = bound.run()
    np.testing.assert_array_equal(second[0], 7 - B)
    assert first[0] is second[0]
    (output,) = bound.outputs.values()
    assert output is second[0]


def test_the_callers_own_arrays_are_the_buffers(preset: type[omb.Preset]) -> None:
    a, b, y = A.copy(), B.copy(), np.empty((1, 3), np.float32)
    rep = preset.prepare(models.subtract())
    bound = rep.bind([a, b], y)
    a[0, 0] = -5
    assert bound.run()[0] is y
    np.testing.assert_array_equal(y, a - B)
    named = rep.bind({i.name: v for i, v in zip(rep.get_inputs(), (a, b), strict=True)}, {rep.get_outputs()[0].name: y})
    b[...] = 0
    named.run()
    np.testing.assert_array_equal(y, a)


def test_arrays_that_cannot_be_buffers_are_copied_into_one(preset: type[omb.Preset]) -> None:
    strided = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    readonly = np.ones((2, 3), np.float32)
    readonly.flags.writeable = False
    bound = preset.prepare(models.subtract()).bind([strided, readonly])
    np.testing.assert_array_equal(bound.run()[0], strided - readonly)
    first, second = bound.inputs.values()
    first[...], second[...] = 3, 1
    assert (bound.run()[0] == 2).all()
    assert (readonly == 1).all()


def test_runs_of_others_leave_the_buffers_alone(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(models.subtract())
    one, other = rep.bind([A.copy(), B.copy()]), rep.bind([B.copy(), A.copy()])
    one.run()
    other.run()
    kept = rep.run([A, A])
    np.testing.assert_array_equal(one.outputs["y"], A - B)
    np.testing.assert_array_equal(other.outputs["y"], B - A)
    one.run()
    assert (kept[0] == 0).all()


def test_a_bound_run_outlives_its_model(preset: type[omb.Preset]) -> None:
    bound = preset.prepare(models.subtract()).bind([A.copy(), B.copy()])
    np.testing.assert_array_equal(bound.run()[0], A - B)


def test_types_that_the_engine_takes_in_another_are_converted(preset: type[omb.Preset]) -> None:
    kind = TensorProto.BFLOAT16
    inputs, outputs = [models.tensor("x", (1, 3), kind)], [models.tensor("y", (1, 3), kind)]
    bound = preset.prepare(models.one_node("Identity", inputs, outputs)).bind(A.astype(ml_dtypes.bfloat16))
    assert bound.inputs["x"].dtype == bound.outputs["y"].dtype == ml_dtypes.bfloat16
    bound.inputs["x"][...] = 1.5
    assert (bound.run()["y"] == 1.5).all()
    mine = np.zeros((1, 3), ml_dtypes.bfloat16)
    preset.prepare(models.one_node("Identity", inputs, outputs)).bind(A.astype(ml_dtypes.bfloat16), mine).run()
    np.testing.assert_array_equal(mine.astype(np.float32), A)


WRONG_OUTPUTS: list[tuple[Any, str]] = [
    ([np.empty((1, 3), np.float32)] * 2, "1 outputs .* 2 buffers"),
    ({"z": np.empty((1, 3), np.float32)}, "no output 'z'"),
    (np.empty((1, 4), np.float32), r"shape \(1, 3\) is wanted; it has"),
    (np.empty((1, 3), np.float64), "dtype float32 .* has dtype float64"),
    (np.empty((1, 6), np.float32)[:, ::2], "C-contiguous"),
    ([[0.0, 0.0, 0.0]], "a list given"),
]


@pytest.mark.parametrize(("outputs", "message"), WRONG_OUTPUTS, ids=[m for _, m in WRONG_OUTPUTS])
def test_a_wrong_output_buffer_is_refused(preset: type[omb.Preset], outputs: Any, message: str) -> None:
    with pytest.raises(omb.InputError, match=message):
        preset.prepare(models.subtract()).bind([A, B], outputs)


def test_wrong_inputs_are_refused_as_by_run(preset: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="float64"):
        preset.prepare(models.subtract()).bind([A, B.astype(np.float64)])


def test_text_has_no_fixed_buffers(ort_cpu: type[omb.Preset]) -> None:
    kind = TensorProto.STRING
    made = models.one_node("Identity", [models.tensor("x", ["N"], kind)], [models.tensor("y", ["N"], kind)])
    with pytest.raises(omb.UnsupportedModelError, match="'x' is a tensor\\(string\\).*Use run"):
        ort_cpu.prepare(made).bind(np.array(["a"], object))


def test_an_output_that_changes_its_shape_is_an_error(engine: type[omb.Preset]) -> None:
    outputs = [models.tensor("y", [1, "K"], TensorProto.INT64)]
    bound = engine.prepare(models.one_node("NonZero", [models.tensor("x", (3,))], outputs)).bind(np.float32([0, 1, 2]))
    assert bound.run()["y"].tolist() == [[1, 2]]
    bound.inputs["x"][...] = 1
    with pytest.raises(omb.RunError):
        bound.run()


def test_results_stay_on_the_cpu_where_there_is_no_other_device(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(models.subtract())
    np.testing.assert_array_equal(rep.run([A, B], output_device="CPU")[0], A - B)
    for call in (rep.run, rep.bind):
        with pytest.raises(omb.DeviceError, match="output_device='CUDA:0'.*Leave output_device out"):
            call([A, B], output_device="CUDA:0")


def test_an_output_that_is_an_input_or_listed_twice_is_written_too(preset: type[omb.Preset]) -> None:
    x, y = models.tensor("x", (1, 3)), models.tensor("y", (1, 3))
    made = models.model([models.node("Relu", ["x"], ["y"])], [x], [x, y, y])
    bound = preset.prepare(made, fallback="full").bind(A.copy())
    bound.inputs["x"][...] = 7
    for result in bound.run():
        assert (result == 7).all()
    handed_on = preset.prepare(models.model([], [x], [x]), fallback="full").bind(A.copy())
    handed_on.inputs["x"][...] = 7
    assert (handed_on.run()[0] == 7).all()


def test_outputs_go_by_names_that_are_no_identifiers(preset: type[omb.Preset]) -> None:
    made = models.one_node("Relu", [models.tensor("x", (1, 3))], [models.tensor("out.1", (1, 3))])
    bound = preset.prepare(made).bind(A.copy())
    assert bound.outputs["out.1"] is bound.run()["out.1"]


def test_a_smaller_output_is_an_error_and_no_old_result(engine: type[omb.Preset]) -> None:
    outputs = [models.tensor("y", [1, "K"], TensorProto.INT64)]
    bound = engine.prepare(models.one_node("NonZero", [models.tensor("x", (3,))], outputs)).bind(np.float32([1, 1, 1]))
    bound.inputs["x"][...] = [0, 1, 0]
    with pytest.raises(omb.RunError):
        bound.run()
    bound.inputs["x"][...] = 1
    assert bound.run()["y"].tolist() == [[0, 1, 2]]


def test_buffers_of_two_outputs_do_not_overlap(engine: type[omb.Preset]) -> None:
    outputs = [models.tensor("a", (1, 3)), models.tensor("b", (1, 3))]
    rep = engine.prepare(models.one_node("Split", [models.tensor("x", (2, 3))], outputs, num_outputs=2))
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.empty((2, 3), np.float32)
    rep.bind(x, [y[:1], y[1:]]).run()
    np.testing.assert_array_equal(x, y)
    with pytest.raises(omb.InputError, match="outputs 'a' and 'b' overlap"):
        rep.bind(x, [y[:1], y[:1]])


@pytest.mark.parametrize("rows", [slice(0, 9), slice(1, 10)])
def test_an_output_may_lie_where_an_input_does(preset: type[omb.Preset], rows: slice) -> None:
    """The engine reads rows of it when it has written others."""
    square = models.tensor("x", (9, 9))
    turned = models.node("Transpose", ["x"], ["y"])
    rep = preset.prepare(models.model([turned], [square], [models.tensor("y", (9, 9))]))
    memory = np.zeros((10, 9), np.float32)
    x, y = memory[:9], memory[rows]
    bound = rep.bind(x, [y])
    x[...] = right = np.arange(81, dtype=np.float32).reshape(9, 9)
    assert bound.run()["y"] is y
    np.testing.assert_array_equal(y, right.T)


def test_a_buffer_is_written_into_and_not_replaced(engine: type[omb.Preset]) -> None:
    bound = engine.prepare(models.subtract()).bind([A.copy(), B.copy()])
    bound.inputs["a"] += 1
    np.testing.assert_array_equal(bound.run()[0], A + 1 - B)
    with pytest.raises(omb.InputError, match="Write into it"):
        bound.inputs["a"] = A
    with pytest.raises(omb.InputError, match="no buffer 'c'; there are 'a', 'b'"):
        bound.inputs["c"] = A


NO_CHANGES: list[Callable[[BoundRun], Any]] = [
    lambda bound: bound.inputs.update(a=A),
    lambda bound: bound.inputs.update({"a": A}),
    lambda bound: bound.inputs.update([("c", A)]),
    lambda bound: bound.inputs.update(5),
    lambda bound: operator.ior(bound.inputs, {"a": A}),
    lambda bound: bound.inputs.setdefault("a", A),
    lambda bound: bound.inputs.setdefault("c"),
    lambda bound: bound.inputs.pop("a"),
    lambda bound: bound.inputs.pop("c", None),
    lambda bound: bound.inputs.popitem(),
    lambda bound: bound.inputs.clear(),
    lambda bound: operator.delitem(bound.inputs, "a"),
    lambda bound: setattr(bound, "inputs", {"a": A, "b": B}),
    lambda bound: bound.outputs.update(y=A),
    lambda bound: bound.outputs.pop("y"),
    lambda bound: setattr(bound, "outputs", {"y": A}),
]


def test_the_buffers_stay_as_they_are(preset: type[omb.Preset]) -> None:
    bound = preset.prepare(models.subtract()).bind([A.copy(), B.copy()])
    for change in NO_CHANGES:
        with pytest.raises(omb.InputError, match="replaced|no buffer 'c'|removed: [ay]|takes a mapping"):
            change(bound)
    bound.inputs.update(bound.inputs)
    bound.inputs |= {"a": bound.inputs["a"]}
    bound.outputs.update(y=bound.outputs["y"])
    assert (list(bound.inputs), list(bound.outputs)) == (["a", "b"], ["y"])
    np.testing.assert_array_equal(bound.run()["y"], A - B)


def test_the_engine_keeps_the_arrays_that_it_reads(preset: type[omb.Preset]) -> None:
    bound = preset.prepare(models.subtract()).bind([A.copy(), B.copy()])
    kept = [weakref.ref(array) for array in (*bound.inputs.values(), *bound.outputs.values())]
    dict.clear(bound.inputs)
    dict.clear(bound.outputs)
    gc.collect()
    assert all(array() is not None for array in kept)
    np.testing.assert_array_equal(bound.run()["y"], A - B)


def test_memory_that_is_not_aligned_is_no_buffer(engine: type[omb.Preset]) -> None:
    x = np.frombuffer(bytearray(13), np.float32, 3, offset=1).reshape(1, 3)
    bound = engine.prepare(models.subtract()).bind([x, B.copy()])
    assert bound.inputs["a"] is not x
    with pytest.raises(omb.InputError, match="aligned"):
        engine.prepare(models.subtract()).bind([A, B], x)


@pytest.mark.parametrize("order", ["strided", "fortran"])
def test_any_layout_will_do_with_an_output_device(preset: type[omb.Preset], order: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    given = np.asfortranarray(x) if order == "fortran" else np.repeat(x, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(preset.prepare(models.relu((4, 6))).run(given, output_device="CPU")[0], x)


def test_types_that_numpy_lacks_come_to_the_host_unadapted(ort_cpu: type[omb.Preset]) -> None:
    kind = TensorProto.BFLOAT16
    made = models.one_node("Identity", [models.tensor("x", (1, 3), kind)], [models.tensor("y", (1, 3), kind)])
    x = A.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(ort_cpu.prepare(made, adapt=False).run(x, output_device="CPU")[0], x)


def test_an_output_that_is_declared_with_a_wrong_rank(ort_cpu: type[omb.Preset]) -> None:
    """The shape of the first run counts, as `run` has it; exported recognition models declare such outputs."""
    model = models.one_node(
        "Reshape",
        [models.tensor("x", [2, 3]), models.tensor("s", ["k"], TensorProto.INT64)],
        [models.tensor("y", ["N"])],
        opset=13,
    )
    x, shape = np.arange(6, dtype=np.float32).reshape(2, 3), np.int64([3, 2])
    rep = ort_cpu.prepare(model)
    buffer = np.zeros((3, 2), np.float32)
    for outputs in (None, {"y": buffer}):
        bound = rep.bind({"x": x.copy(), "s": shape.copy()}, outputs)
        for factor in (1, 2):
            bound.inputs["x"][...] = x * factor
            bound.run()
            np.testing.assert_array_equal(bound.outputs["y"], (x * factor).reshape(3, 2))
    np.testing.assert_array_equal(buffer, (x * 2).reshape(3, 2))
    bound.inputs["s"][...] = [6, 1]
    with pytest.raises(omb.RunError, match=r"\(6, 1\) by now"):
        bound.run()


def test_only_an_array_that_was_taken_over_tells_the_device(engine: type[omb.Preset]) -> None:
    class Other:
        device = "cuda:0"

    with pytest.raises(omb.InputError, match="a Other given. Pass a numpy array"):
        engine.prepare(models.relu((1, 3))).bind(A, [Other()])
