# SPDX-License-Identifier: Apache-2.0
"""Numpy arrays of every layout, and numbers that are not arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

BASE = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)


def _read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _unaligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fortran": np.asfortranarray,
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
    "read-only and fortran": lambda a: _read_only(np.asfortranarray(a)),
    "big-endian": lambda a: a.astype(">f4"),
    "big-endian and strided": lambda a: np.repeat(a.astype(">f4"), 2, axis=0)[::2],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "unaligned": _unaligned,
    "a subclass of ndarray": lambda a: a.view(type("Mine", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_does_not_change_the_result(preset: type[omb.Preset], layout: str) -> None:
    array = LAYOUTS[layout](BASE)
    expected = np.maximum(np.array(array, np.float32), 0)
    before = np.array(array)
    np.testing.assert_array_equal(preset.prepare(models.relu()).run(array)[0], expected)
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("dtype", ["<i8", ">i8", ">i4", ">f8", ">u2", ">f2", "?", "i1"])
def test_a_byte_order_does_not_change_the_result(engine: type[omb.Preset], dtype: str) -> None:
    from onnx import helper

    native = np.dtype(dtype).newbyteorder("=")
    elem_type = helper.np_dtype_to_tensor_dtype(native)
    made = models.one_node("Identity", [models.tensor("x", ["N"], elem_type)], [models.tensor("y", ["N"], elem_type)])
    values = np.array([0, 1, 1, 0] if dtype == "?" else [0, 1, 2, 100], dtype)
    result = engine.prepare(made).run(values)[0]
    assert result.dtype == native
    assert result.dtype.isnative
    np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize(
    "scalar",
    [np.array(-2.5, np.float32), np.float32(-2.5), -2.5, np.array(-2.5, ">f4")],
    ids=["0-d array", "numpy scalar", "Python float", "0-d big-endian"],
)
def test_a_scalar_input(preset: type[omb.Preset], scalar: object) -> None:
    made = models.one_node("Neg", [models.tensor("x", [])], [models.tensor("y", [])])
    result = preset.prepare(made).run(scalar)[0]
    assert (result.shape, result.dtype, float(result)) == ((), np.float32, 2.5)


@pytest.mark.parametrize("scalar", [np.int64(7), 7, np.array(7)], ids=["numpy scalar", "Python int", "0-d array"])
def test_an_integer_scalar_input(engine: type[omb.Preset], scalar: object) -> None:
    made = models.one_node(
        "Add",
        [models.tensor("x", [], models.INT64), models.tensor("z", [], models.INT64)],
        [models.tensor("y", [], models.INT64)],
    )
    assert int(engine.prepare(made).run([scalar, scalar])[0]) == 14


def test_a_python_number_that_the_type_cannot_hold_is_refused(engine: type[omb.Preset]) -> None:
    made = models.one_node("Identity", [models.tensor("x", [], 3)], [models.tensor("y", [], 3)])  # 3: int8
    with pytest.raises(omb.InputError, match="300"):
        engine.prepare(made).run(300)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)], ids=str)
def test_a_zero_size_array(preset: type[omb.Preset], shape: tuple[int, ...]) -> None:
    result = preset.prepare(models.relu(["N", "M"])).run(np.zeros(shape, np.float32))[0]
    assert (result.shape, result.dtype) == (shape, np.float32)


def test_a_zero_size_array_among_others(engine: type[omb.Preset]) -> None:
    made = models.one_node(
        "Concat", [models.tensor("a", ["N", 3]), models.tensor("b", ["M", 3])], [models.tensor("y", ["K", 3])], axis=0
    )
    result = engine.prepare(made).run([np.zeros((0, 3), np.float32), BASE])[0]
    np.testing.assert_array_equal(result, BASE)
