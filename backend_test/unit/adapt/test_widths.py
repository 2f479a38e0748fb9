# SPDX-License-Identifier: Apache-2.0
"""Types that OpenVINO computes in narrower ones: inputs are checked at each run, constants refuse a model, float64 is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnx_multi_backend import OpenvinoBackend
from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.errors import InputError, PrecisionWarning, UnsupportedModelError

Array = np.ndarray[Any, Any]


def _model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[Any]]], output: int, *constants: tuple[str, Any]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "widths",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _node(op_type: str, *inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), [output], **attributes)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.UINT64])
def test_an_input_beyond_int32_is_refused_with_the_element(kind: int) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    model = _model([_node("Transpose", "ids")], {"ids": (kind, ["a", 3])}, kind)
    prepared = OpenvinoBackend.prepare(model)
    good = np.array([[1, 2, 3], [4, 5, 2**31 - 1]], dtype)
    np.testing.assert_array_equal(prepared.run([good])[0], good.T)
    bad = good.copy()
    bad[1, 0] = 2**31
    with pytest.raises(InputError, match=r"input 'ids': element \[1, 0\] is 2147483648"):
        prepared.run([bad])
    np.testing.assert_array_equal(prepared.run([good])[0], good.T)


def test_bound_buffers_are_checked_at_each_run() -> None:
    prepared = OpenvinoBackend.prepare(_model([_node("Neg", "x")], {"x": (TensorProto.INT64, [3])}, TensorProto.INT64))
    bound = prepared.bind([np.array([1, 2, 3])])
    np.testing.assert_array_equal(bound.run()[0], [-1, -2, -3])
    bound.inputs["x"][1] = -(2**40)
    with pytest.raises(InputError, match=r"element \[1\] is -1099511627776"):
        bound.run()


def test_a_model_from_the_cache_is_checked_too(tmp_path: Path) -> None:
    model = _model([_node("Neg", "x")], {"x": (TensorProto.INT64, [3])}, TensorProto.INT64)
    for _ in range(2):
        prepared = OpenvinoBackend.prepare(model.SerializeToString(), cache_dir=str(tmp_path))
        with pytest.raises(InputError, match="element"):
            prepared.run([np.array([1, 2**33, 3])])


_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Greater": np.greater,
}


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
@pytest.mark.parametrize("op", sorted(_ARITHMETIC))
def test_a_result_is_right_or_refused(op: str, dtype: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = TensorProto.BOOL if op == "Greater" else kind
    prepared = OpenvinoBackend.prepare(_model([_node(op, "a", "b")], {"a": (kind, [8]), "b": (kind, [8])}, made))
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    near = [s * 2**p + d for p in range(64) for s in (1, -1) for d in (-1, 0, 1) if low <= s * 2**p + d <= high]
    element = st.one_of(st.integers(max(low, -100), 100), st.sampled_from(near))
    small = st.integers(max(low, -20000), 20000)
    answered = 0

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.one_of(small, element), min_size=16, max_size=16) | st.lists(small, min_size=16, max_size=16))
    def check(numbers: list[int]) -> None:
        nonlocal answered
        a, b = np.array(numbers[:8], dtype), np.array(numbers[8:], dtype)
        try:
            got = prepared.run([a, b])[0]
        except InputError:
            return
        answered += 1
        np.testing.assert_array_equal(got, _ARITHMETIC[op](a, b))

    check()
    assert answered  # small numbers are taken


def test_sizes_are_computed_with_as_ever() -> None:
    nodes = [
        _node("Shape", "x", output="s"),
        _node("Gather", "s", "first", output="n"),
        _node("Mul", "n", "two", output="m"),
        _node("Div", "m", "two", output="k"),
        _node("Max", "k", "one", output="l"),
        _node("Concat", "l", "rest", output="shape", axis=0),
        _node("Reshape", "x", "shape"),
    ]
    constants = [("first", np.array([0])), ("two", np.array([2])), ("one", np.array([1])), ("rest", np.array([-1]))]
    model = _model(nodes, {"x": (TensorProto.FLOAT, ["n", 2, 3])}, TensorProto.FLOAT, *constants)
    prepared = OpenvinoBackend.prepare(model)
    assert not [a for a in prepared.adaptations if a.pass_name == "exact_integers"]
    assert prepared.run([np.zeros((5, 2, 3), np.float32)])[0].shape == (5, 6)


def test_a_constant_beyond_int32_refuses_the_model() -> None:
    model = _model([_node("Add", "x", "c")], {"x": (TensorProto.INT64, [2])}, TensorProto.INT64, ("c", np.array(2**40)))
    with pytest.raises(UnsupportedModelError, match="'c' is beyond what int32 holds"):
        OpenvinoBackend.prepare(model)


def test_a_constant_of_both_ends_of_its_type_refuses_the_model() -> None:
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    model = _model([_node("Sub", "x", "c")], {"x": (TensorProto.INT64, [2])}, TensorProto.INT64, ("c", ends))
    with pytest.raises(UnsupportedModelError, match="'c' is beyond what int32 holds"):
        OpenvinoBackend.prepare(model)


@pytest.mark.parametrize("to", [TensorProto.UINT32, TensorProto.UINT64])
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_a_negative_constant_that_becomes_unsigned_refuses_the_model(kind: type, to: int) -> None:
    """It is cast before anything runs, and limited to int32 then."""
    for number, refused in ((-3, True), (3, False)):
        model = _model([_node("Cast", "c", to=to)], {}, to, ("c", np.array([1, number], kind)))
        if refused:
            with pytest.raises(UnsupportedModelError, match="its result leaves what int32 holds"):
                OpenvinoBackend.prepare(model)
        else:
            np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([])[0], [1, 3])


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("others", [[], ["d"]])
def test_of_constants_beyond_int32_alone_none_is_right(operator: str, others: list[str]) -> None:
    """Beside a number that int32 holds, a constant below it never is the greatest: here it is."""
    constants = [(name, np.array([1, -(2**32) + i, 7])) for i, name in enumerate(("c", *others))]
    model = _model([_node(operator, "c", *others)], {}, TensorProto.INT64, *constants)
    with pytest.raises(UnsupportedModelError, match="'c' is beyond what int32 holds"):
        OpenvinoBackend.prepare(model)


def test_a_constant_in_a_branch_refuses_the_model() -> None:
    def branch(value: int) -> onnx.GraphProto:
        tensor = numpy_helper.from_array(np.array([value]))
        nodes = [_node("Constant", output="c", value=tensor), _node("Add", "x", "c", output="r")]
        return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("r", TensorProto.INT64, [2])])

    node = _node("If", "flag", then_branch=branch(1), else_branch=branch(2**31))
    inputs = {"flag": (TensorProto.BOOL, []), "x": (TensorProto.INT64, [2])}
    with pytest.raises(UnsupportedModelError, match="beyond what int32 holds"):
        OpenvinoBackend.prepare(_model([node], inputs, TensorProto.INT64))


@pytest.mark.parametrize(("start", "end", "step"), [(1, 2**63 - 1, 1), (2**63 - 1, -(2**63), -1), (-(2**63), 2**40, 2)])
def test_the_ends_of_a_slice_may_be_beyond(start: int, end: int, step: int) -> None:
    constants = [("s", np.array([start])), ("e", np.array([end])), ("a", np.array([0])), ("t", np.array([step]))]
    model = _model(
        [_node("Slice", "x", "s", "e", "a", "t")], {"x": (TensorProto.FLOAT, ["n"])}, TensorProto.FLOAT, *constants
    )
    prepared = OpenvinoBackend.prepare(model)
    for count in (5, 8):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], x[slice(start, None if end == -(2**63) else end, step)])


def test_float64_is_told_once_and_names_the_nodes() -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["z"], name="twice"), _node("Neg", "z")]
    model = _model(nodes, {"x": (TensorProto.DOUBLE, [2])}, TensorProto.DOUBLE)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        OpenvinoBackend.prepare(model)
    (told,) = [w for w in seen if issubclass(w.category, PrecisionWarning)]
    assert "Add 'twice'" in str(told.message)
    assert told.filename == __file__
    with pytest.raises(UnsupportedModelError, match="Add 'twice': float64 is computed in float32"):
        OpenvinoBackend.prepare(model, precision_policy="strict")


def test_float32_is_not_told_of() -> None:
    model = _model([_node("Neg", "x")], {"x": (TensorProto.FLOAT, [2])}, TensorProto.FLOAT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OpenvinoBackend.prepare(model, precision_policy="strict")


def test_what_a_loop_carries_is_taken_for_an_int32() -> None:
    """Else a loop that adds to a counter could not be run at all."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (int64 n, int64[3] x) => (int64[3] y) <bool go = {1}> {
        y = Loop (n, go, x) <body = b (int64 i, bool c, int64[3] s) => (bool d, int64[3] t) {
            d = Identity (c) t = Add (s, x) }> }"""
    )
    prepared = OpenvinoBackend.prepare(model)
    x = np.array([1, -5, 2**20])
    for steps in (2, 5):
        np.testing.assert_array_equal(prepared.run([np.array(steps), x])[0], (steps + 1) * x)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("amount", [0, 1, 9, 25, 26, 40])
def test_bits_of_uint64_are_shifted_right_or_not_at_all(direction: str, amount: int) -> None:
    model = _model(
        [_node("BitShift", "x", "amount", direction=direction)],
        {"x": (TensorProto.UINT64, ["n"])},
        TensorProto.UINT64,
        ("amount", np.uint64(amount)),
    )
    if direction == "LEFT" and amount > 25:
        with pytest.raises(UnsupportedModelError, match="shifts beyond what int32 holds"):
            OpenvinoBackend.prepare(model)
        return
    prepared = OpenvinoBackend.prepare(model)
    answered = 0
    for x in (2 ** np.arange(31), 2 ** np.arange(1, 32) - 1, np.arange(20)):
        for part in np.split(np.uint64(x), len(x)):
            try:
                got = prepared.run([part])[0]
            except InputError:
                assert direction == "LEFT"
                assert int(part[0]) << (amount + 1) >= 2**31
                continue
            answered += 1
            right = part << np.uint64(amount) if direction == "LEFT" else part >> np.uint64(amount)
            np.testing.assert_array_equal(got, right)
    assert answered > 20


@pytest.mark.parametrize("axes", [None, [-1], [0, 1], "x"])
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.UINT64])
def test_a_product_beyond_int32_is_refused(kind: int, axes: Any) -> None:
    inputs: dict[str, tuple[int, list[Any]]] = {"x": (kind, [2, "n"])}
    constants: list[tuple[str, Any]] = []
    names = ["x"] if axes is None else ["x", "axes"]
    if axes == "x":
        inputs["axes"] = (TensorProto.INT64, [1])
    elif axes is not None:
        constants = [("axes", np.array(axes))]
    prepared = OpenvinoBackend.prepare(_model([_node("ReduceProd", *names)], inputs, kind, *constants))
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    more = [np.array([1])] if axes == "x" else []
    along = None if axes is None else 1 if axes == "x" else tuple(axes)
    good = np.array([[3, 5, 70, 900], [1, 2, 3, 4]], dtype)
    np.testing.assert_array_equal(prepared.run([good, *more])[0], good.prod(axis=along, keepdims=True))
    bad = np.array([[1, 2, 3, 4], [3, 5, 70000, 90000]], dtype)
    with pytest.raises(InputError, match="a product of its elements is"):
        prepared.run([bad, *more])


def test_running_products_are_held_to_int32() -> None:
    axis = ("axis", np.array(0))
    inputs: dict[str, tuple[int, list[Any]]] = {"x": (TensorProto.INT64, ["n"])}
    model = _model([_node("CumProd", "x", "axis")], inputs, TensorProto.INT64, axis)
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 26))
    prepared = OpenvinoBackend.prepare(model)
    np.testing.assert_array_equal(prepared.run([np.array([3, -5, 70, 0])])[0], [3, -15, -1050, 0])
    with pytest.raises(InputError, match="a product of its elements is"):
        prepared.run([np.array([70000, 90000, 0])])


@pytest.mark.parametrize("constant", [1, 200, 2**24, None])
def test_bits_of_uint64_are_shifted_left_by_amounts_known_at_run_time_or_not_at_all(constant: int | None) -> None:
    kind, known = TensorProto.UINT64, constant is not None
    inputs: dict[str, tuple[int, list[Any]]] = (
        {"b": (kind, ["n"])} if known else {"x": (kind, ["n"]), "b": (kind, ["n"])}
    )
    constants = [("x", np.array([constant], np.uint64))] if known else []
    model = _model([_node("BitShift", "x", "b", direction="LEFT")], inputs, kind, *constants)
    prepared = OpenvinoBackend.prepare(model)
    answered = 0
    for x in [constant] if known else [0, 1, 200, 2**15, 2**16 - 1, 2**20]:
        for amount in (0, 1, 6, 7, 15, 16, 30, 31, 40, 63):
            given = [np.uint64([x])] * (not known) + [np.uint64([amount])]
            try:
                found = prepared.run(given)[0]
            except InputError:
                assert x * 2**amount >= 2**31 or (not known and max(amount, x / 2**12) > 15)
                continue
            answered += 1
            np.testing.assert_array_equal(found, np.uint64([x << amount]))
    assert answered >= 3


def test_bits_of_uint64_are_shifted_right_by_amounts_known_at_run_time() -> None:
    kind = TensorProto.UINT64
    model = _model([_node("BitShift", "x", "b", direction="RIGHT")], {"x": (kind, ["n"]), "b": (kind, ["n"])}, kind)
    prepared = OpenvinoBackend.prepare(model)
    x = np.repeat(np.uint64([2**31 - 1, 2**30 + 1, 12345678, 5]), 8)
    y = np.tile(np.uint64([0, 1, 7, 30, 31, 32, 63, 64]), 4)
    right = [int(a) >> int(b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(prepared.run([x, y])[0], np.uint64(right))


def test_a_limit_that_is_an_input_is_held_to_what_is_computed_of_it() -> None:
    nodes = [_node("Clip", "x", "zero", "most", output="c"), _node("ReduceSum", "c", "last", keepdims=0)]
    inputs: dict[str, tuple[int, list[Any]]] = {"x": (TensorProto.INT64, ["n", 3]), "most": (TensorProto.INT64, [])}
    constants = [("zero", np.array(0)), ("last", np.array([-1]))]
    prepared = OpenvinoBackend.prepare(_model(nodes, inputs, TensorProto.INT64, *constants))
    x = np.array([[-5, 2, 9], [1, 100, 3]])
    np.testing.assert_array_equal(prepared.run([x, np.array(7)])[0], [9, 11])
    with pytest.raises(InputError, match="input 'most'"):
        prepared.run([x, np.array(2**31 - 1)])


@pytest.mark.parametrize("kind", [TensorProto.UINT32, TensorProto.UINT64])
@pytest.mark.parametrize("first", ["BitwiseNot", "Sub"])
@pytest.mark.parametrize(
    "operator", ["Div", "Mod", "Max", "Less", "Cast", "ReduceMax", "Add", "Mul", "Identity", "signed"]
)
def test_an_unsigned_number_that_wraps_around_is_right_or_refused(kind: int, first: str, operator: str) -> None:
    """It is negative in int32: what depends on its low bits alone is right, and the rest would silently be another number."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    made = _node("BitwiseNot", "x", output="v") if first == "BitwiseNot" else _node("Sub", "three", "x", output="v")
    attributes = {"Cast": {"to": TensorProto.FLOAT}, "signed": {"to": TensorProto.INT64}}.get(operator, {})
    others = ["three"] if operator in ("Div", "Mod", "Max", "Less", "Add", "Mul") else []
    node = _node("Cast" if operator == "signed" else operator, "v", *others, **attributes)
    output = {"Less": TensorProto.BOOL, "Cast": TensorProto.FLOAT, "signed": TensorProto.INT64}.get(operator, kind)
    model = _model([made, node], {"x": (kind, ["n"])}, output, ("three", np.array([3], dtype)))
    widened = operator == "signed" and kind == TensorProto.UINT32
    if widened or operator not in ("Add", "Mul", "Identity", "signed"):
        with pytest.raises(UnsupportedModelError, match="wrapped around below 0"):
            OpenvinoBackend.prepare(model)
        return
    x = np.array([0, 1, 5, 1000], dtype)
    v = ~x if first == "BitwiseNot" else dtype.type(3) - x
    right = {"Add": v + dtype.type(3), "Mul": v * dtype.type(3), "Identity": v, "signed": v.astype(np.int64)}[operator]
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([x])[0], right)


@pytest.mark.parametrize("shape", [[], [6], ["n"]])
@pytest.mark.parametrize("amounts", [30, 31, 32, [0, 1, 30, 31, 32, 40]])
def test_bits_of_uint32_are_shifted_left_by_constants(shape: list[Any], amounts: Any) -> None:
    """By 31 bits it is a product by 2**31, which OpenVINO takes for 2**31 - 1."""
    if not shape and not np.isscalar(amounts):
        pytest.skip("one number has one amount")
    node = _node("BitShift", "x", "b", direction="LEFT")
    constant = np.array(amounts, np.uint32)
    model = _model([node], {"x": (TensorProto.UINT32, shape)}, TensorProto.UINT32, ("b", constant))
    prepared = OpenvinoBackend.prepare(model)
    for first in (1, 2, 3, 100, 2**31 - 7):
        x = np.array(first + np.arange(6) if shape else first, np.uint32)
        right = (x.astype(np.uint64) << constant).astype(np.uint32)
        np.testing.assert_array_equal(prepared.run([x])[0], right)


@pytest.mark.parametrize("kind", [TensorProto.UINT32, TensorProto.UINT64])
@pytest.mark.parametrize("first", ["BitwiseNot", "Sub"])
def test_an_unsigned_constant_that_wraps_around_when_it_is_folded_is_refused(kind: int, first: str) -> None:
    """OpenVINO computes it ahead and limits it to int32: a mask would lack bits."""
    constants = [("three", np.array([3], helper.tensor_dtype_to_np_dtype(kind)))]
    constants += [("seven", constants[0][1] + 4)] if first == "Sub" else []
    nodes = [_node(first, *(name for name, _ in constants), output="v"), _node("BitwiseAnd", "x", "v")]
    model = _model(nodes, {"x": (kind, ["n"])}, kind, *constants)
    with pytest.raises(UnsupportedModelError, match="its result leaves what int32 holds"):
        OpenvinoBackend.prepare(model)


def test_a_difference_of_unsigned_constants_that_is_nowhere_below_0_is_right() -> None:
    constants = [("a", np.array([1, 9], np.uint32)), ("b", np.array([1, 5], np.uint32))]
    nodes = [_node("Sub", "a", "b", output="v"), _node("BitwiseAnd", "x", "v")]
    model = _model(nodes, {"x": (TensorProto.UINT32, [2])}, TensorProto.UINT32, *constants)
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([np.array([7, 6], np.uint32)])[0], [0, 4])


@pytest.mark.parametrize("op_type", ["ReduceSumSquare", "ReduceL2", "ReduceProd"])
@pytest.mark.parametrize("largest", [1e200, -np.finfo(np.float64).max])
def test_squares_beyond_float64_are_no_error(op_type: str, largest: float) -> None:
    values = ranges(_model([_node(op_type, "c")], {}, TensorProto.DOUBLE, ("c", np.float64([largest]))).graph)
    assert "y" in values
