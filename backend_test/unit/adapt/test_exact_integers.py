# SPDX-License-Identifier: Apache-2.0
"""Integers over the whole range of their types: results wrap around as the type does, on every form and in every rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend import OpenvinoBackend, OrtCpuBackend
from onnx_multi_backend.host.applies import applies

Array = np.ndarray[Any, Any]

_NARROW = ("int8", "uint8", "int16", "uint16")
_SIZE = 12
#: Runs an example.
_RUNS = 5


class Form:
    """One node on integers, and what it has to give."""

    def __init__(
        self,
        op_type: str,
        want: Callable[..., Array],
        inputs: int = 1,
        constants: Mapping[int, Any] | None = None,
        **attributes: Any,
    ) -> None:
        self.op_type, self.want, self.inputs, self.attributes = op_type, want, inputs, attributes
        self.constants = dict(constants or {})

    def model(self, dtype: str, *, fixed: bool) -> onnx.ModelProto:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        names = [f"x{i}" for i in range(self.inputs)]
        initializers = []
        for place, value in sorted(self.constants.items()):
            array = np.asarray(value) if isinstance(value, np.ndarray) else np.asarray(value, dtype)
            initializers.append(numpy_helper.from_array(array, f"c{place}"))
            names.insert(place, f"c{place}")
        zeros = [np.zeros(_SIZE, dtype) + 1 for _ in range(self.inputs)]
        with np.errstate(all="ignore"):
            made = np.asarray(self.want(*zeros))
        outputs = [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(made.dtype), None)]
        nodes = [helper.make_node(self.op_type, names, ["y"], **self.attributes)]
        if made.dtype.kind in "iu":  # a consumer that sees what is left beyond the type
            nodes.append(helper.make_node("Cast", ["y"], ["wide"], to=onnx.TensorProto.FLOAT))
            nodes.append(helper.make_node("Less", ["wide", "zero"], ["negative"]))
            initializers.append(numpy_helper.from_array(np.float32(0), "zero"))
            outputs.append(helper.make_tensor_value_info("negative", onnx.TensorProto.BOOL, None))
        given = [helper.make_tensor_value_info(f"x{i}", kind, [_SIZE if fixed else "n"]) for i in range(self.inputs)]
        graph = helper.make_graph(nodes, "integers", given, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _divide(a: Array, b: Array) -> Array:
    quotient = abs(a.astype(object)) // abs(b.astype(object))
    return np.where((a < 0) != (b < 0), -quotient, quotient).astype(object).astype(a.dtype)


def _sum(x: Array) -> Array:
    return x.sum(dtype=x.dtype)


_FORMS = {
    "Abs": Form("Abs", np.abs),
    "Add": Form("Add", np.add, 2),
    "Clip": Form("Clip", lambda x: np.clip(x, 5, 100), 1, {1: 5, 2: 100}),
    "Max": Form("Max", lambda a, b, c: np.maximum(np.maximum(a, b), c), 3),
    "Min": Form("Min", np.minimum, 2),
    "Mul": Form("Mul", np.multiply, 2),
    "Neg": Form("Neg", np.negative),
    "ReduceMax": Form("ReduceMax", np.max, keepdims=0),
    "ReduceMin": Form("ReduceMin", np.min, keepdims=0),
    "ReduceSum": Form("ReduceSum", _sum, keepdims=0),
    "Relu": Form("Relu", lambda x: np.maximum(x, 0)),
    "Sign": Form("Sign", np.sign),
    "Sub": Form("Sub", np.subtract, 2),
    "PRelu": Form("PRelu", lambda x, s: np.where(x < 0, x * s, x), 2),
    "Pow": Form("Pow", lambda x: x * x * x, 1, {1: 3}),
    "Pad": Form("Pad", lambda x: np.pad(x, 1, constant_values=0x55), 1, {1: np.array([1, 1]), 2: 0x55}),
    "Bool": Form("Cast", lambda x: x != 0, to=onnx.TensorProto.BOOL),
    "Int8": Form("Cast", lambda x: x.astype(np.int8), to=onnx.TensorProto.INT8),
    "UInt8": Form("Cast", lambda x: x.astype(np.uint8), to=onnx.TensorProto.UINT8),
    "Int16": Form("Cast", lambda x: x.astype(np.int16), to=onnx.TensorProto.INT16),
    "UInt16": Form("Cast", lambda x: x.astype(np.uint16), to=onnx.TensorProto.UINT16),
}
#: What ONNX Runtime's kernels compare; it has no Relu of int64.
_COMPARING = ("Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Sign")
_DIVISIONS = {
    "Div": Form("Div", _divide, 2),
    "Mod": Form("Mod", np.mod, 2),
    "FMod": Form("Mod", np.fmod, 2, fmod=1),
}

#: Pairs that ONNX's schema has, by preset. Openvino's wider types have a test of their own.
_TYPES = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "Clip"), (*_NARROW, "int32", "uint32", "int64", "uint64")),
    **dict.fromkeys(("Abs", "Sign", "Pad"), (*_NARROW, "int32", "int64")),
    **dict.fromkeys(("Neg", "Relu"), ("int8", "int16", "int32", "int64")),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), ("int8", "uint8", "int32", "uint32", "int64")),
    "ReduceSum": ("int32", "uint32", "int64"),
    "PRelu": ("int32", "uint32", "int64"),
    "Pow": ("int32",),
    "Bool": (*_NARROW, "int32", "int64"),
    **dict.fromkeys(("Int8", "UInt8", "Int16", "UInt16"), (*_NARROW, "int32", "int64")),
}
_WIDE = ("int64", "uint64", "uint32")
_CASES = [
    pytest.param(preset, op, dtype, fixed, id=f"{preset.name}-{op}-{dtype}-{'fixed' if fixed else 'dynamic'}")
    for preset in (OrtCpuBackend, OpenvinoBackend)
    for op, dtypes in _TYPES.items()
    for dtype in dtypes
    for fixed in (True, False)
    if not (preset is OpenvinoBackend and dtype in _WIDE) and not (op == "Pow" and preset is OrtCpuBackend)
]

_SETTINGS = settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@functools.cache
def _runs(dtype: str, inputs: int) -> st.SearchStrategy[list[tuple[Array, ...]]]:
    """The inputs of some runs: numbers of the whole range, its ends, and the neighbours of powers of two, where roundings and halves change.

    One seed draws all of them: Hypothesis takes longer to draw an example than the engines to run it.
    """
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    near = sorted({s * 2**p + d for p in range(64) for s in (1, -1) for d in (-1, 0, 1) if low <= s * 2**p + d <= high})
    telling, ends, shape = np.array(near, dtype), np.array([low, high], dtype), (_RUNS, inputs, _SIZE)

    def drawn(seed: int) -> list[tuple[Array, ...]]:
        rng = np.random.default_rng(seed)
        whole = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
        pools = [whole, rng.choice(telling, shape), rng.choice(ends, shape)]
        return [tuple(run) for run in np.choose(rng.integers(len(pools), size=shape), pools)]

    return st.integers(0, 2**63).map(drawn)


def _check(prepared: Any, form: Form, arrays: list[Array]) -> None:
    with np.errstate(all="ignore"):
        want = np.asarray(form.want(*arrays))
    got = prepared.run(arrays)
    assert got[0].dtype == want.dtype
    np.testing.assert_array_equal(got[0], want)
    if len(got) > 1:
        np.testing.assert_array_equal(got[1], want < 0)


@pytest.mark.parametrize(("preset", "op", "dtype", "fixed"), _CASES)
def test_the_whole_range_is_right(preset: Any, op: str, dtype: str, fixed: bool) -> None:
    form = _FORMS[op]
    if preset is OpenvinoBackend and op.lower() == dtype:
        pytest.skip("OpenVINO drops the node")
    if preset is OrtCpuBackend and op in ("Int8", "UInt8", "Int16", "UInt16"):
        pytest.skip("ONNX Runtime's casts are not rewritten")
    prepared = preset.prepare(form.model(dtype, fixed=fixed))

    @_SETTINGS
    @given(_runs(dtype, form.inputs))
    def check(runs: list[tuple[Array, ...]]) -> None:
        for arrays in runs:
            _check(prepared, form, list(arrays))

    check()


@pytest.mark.parametrize("op", _COMPARING)
def test_int64_is_compared_wrongly_by_the_releases_that_the_table_names(ort_cpu: type[omb.Preset], op: str) -> None:
    """The upper halves are equal."""
    form = _FORMS[op]
    prepared = ort_cpu.prepare(form.model("int64", fixed=True), adapt=False)
    lower = np.random.default_rng(0).integers(2**32, size=(60, form.inputs, _SIZE))
    uppers = np.resize([0, -(2**32), 2**40], (60, 1, 1))
    runs = [list(arrays) for arrays in lower + uppers]
    right = [np.array_equal(prepared.run(arrays)[0], form.want(*arrays)) for arrays in runs]
    assert all(right) is not applies({"onnxruntime": "<1.32"})


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("op", sorted(_DIVISIONS))
@pytest.mark.parametrize("preset", [OrtCpuBackend, OpenvinoBackend])
def test_quotients_and_remainders_are_exact(preset: Any, op: str, dtype: str, fixed: bool) -> None:
    form = _DIVISIONS[op]
    prepared = preset.prepare(form.model(dtype, fixed=fixed))
    low = np.iinfo(dtype).min

    @_SETTINGS
    @given(_runs(dtype, 2))
    def check(runs: list[tuple[Array, ...]]) -> None:
        for a, b in runs:
            undefined = (b == 0) | ((a == low) & (low < 0) & (b == np.array(-1).astype(dtype)))
            _check(prepared, form, [a, np.where(undefined, np.array(3, dtype), b)])

    check()


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4])
@pytest.mark.parametrize("size", [20, None])
def test_numbers_cast_to_4_bits_keep_the_low_ones(openvino: type[omb.Preset], dtype: type, size: int | None) -> None:
    x = np.float32([0, 0.4, 0.6, 1.5, 7, 7.9, 8, 15, 15.2, 16, 17.5, 20, 31, 100, -0.6, -1, -7.6, -8, -9, -16])
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        onnx.helper.make_node("Cast", ["narrow"], ["y"], to=onnx.TensorProto.INT32),
    ]
    outputs = [models.tensor("narrow", [size], kind), models.tensor("y", [size], onnx.TensorProto.INT32)]
    model = models.model(nodes, [models.tensor("x", [size])], outputs, opsets={"": 21})
    right = x.astype(np.int64).astype(np.dtype(dtype)).astype(np.int32)
    narrow, wide = openvino.prepare(model).run([x])
    np.testing.assert_array_equal(narrow.astype(np.int32), right)
    np.testing.assert_array_equal(wide, right)


@pytest.mark.parametrize("behind", ["Relu (c)", "Div (c, two)", "Mod (c, two)", "PRelu (c, two)"])
def test_what_reads_a_rewritten_node_is_rewritten_as_well(behind: str) -> None:
    """A Clip tells that its numbers are small. What takes its place does not."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int32[n] x) => (int32[n] y)
        <int32 low = {{-300}}, int32 high = {{300}}, int32 two = {{2}}> {{ c = Clip (x, low, high) y = {behind} }}"""
    )
    x = np.int32([-(2**31), -301, -7, 0, 7, 301, 2**31 - 1])
    (right,) = OrtCpuBackend.prepare(model).run([x])
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([x])[0], right)


def test_a_shift_that_no_rule_writes_does_not_keep_another_node_from_being_written(
    openvino: type[omb.Preset],
) -> None:
    """OpenVINO shifts uint64 rightly but for results beyond int32, and rounds the quotient to float32."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (uint64[n, 1] x, uint64[n, m] z) => (uint64[n, m] y) {
        s = BitShift <direction = "LEFT"> (x, z) y = Div (s, z) }"""
    )
    x, z = np.array([[65_535], [4]], np.uint64), np.array([[1, 9], [2, 7]], np.uint64)
    np.testing.assert_array_equal(openvino.prepare(model).run([x, z])[0], (x << z) // z)


@pytest.mark.parametrize("op_type", ["ReduceMin", "ReduceMax"])
@pytest.mark.parametrize("shape", ["", "[1, 1]"])
def test_what_has_one_element_is_reduced_as_it_is(op_type: str, shape: str) -> None:
    """Nothing is compared. No rule writes the reduction along axes that are known only at run time for OpenVINO's provider."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (int64{shape} x, int64[n] axes) => (int64{shape} y) {{
        y = {op_type} (x, axes) }}"""
    )
    prepared = OrtCpuBackend.prepare(model)
    assert not prepared.adaptations
    x = np.full((1, 1) if shape else (), 2**40 + 2**31)
    for axes in ([], [-1], []) if shape else ([],):
        np.testing.assert_array_equal(prepared.run([x, np.array(axes, np.int64)])[0], x)
