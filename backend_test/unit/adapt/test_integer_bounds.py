# SPDX-License-Identifier: Apache-2.0
"""Integers that OpenVINO computes in int32: a result beyond it is refused, however little of its inputs is left, and no other is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from onnx_multi_backend import OpenvinoBackend
from onnx_multi_backend.adapt.intervals.ranges import Visit, follow
from onnx_multi_backend.errors import InputError, UnsupportedModelError

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.usefixtures("openvino")


def _model(kind: str, body: str, result: str = "", inputs: str = "") -> onnx.ModelProto:
    """A model of an input x, or of these, and of a body that makes y."""
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs or f"{kind}[n] x"}) => ({result or kind}[n] y) {{ {body} }}'
    )


def _right(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])


def _check(model: onnx.ModelProto, right: list[Array], refused: list[Array]) -> None:
    prepared = OpenvinoBackend.prepare(model)
    for x in right:
        np.testing.assert_array_equal(prepared.run([x])[0], _right(model, {"x": x}))
    for x in refused:
        with pytest.raises(InputError, match="gives correct results only for"):
            prepared.run([x])


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("c = Constant <value_int = 40000000> () y = Mul (x, c)", 53),
        ("c = Constant <value_int = 1500000000> () y = Mul (c, x)", 1),
        ("c = Constant <value_int = 8> () y = Pow (x, c)", 14),
        ("c = Constant <value_int = 30000> () a = Mul (x, c) b = Mul (a, c) y = Sub (b, x)", 2),
        ("a = Mul (x, x) b = Mul (a, a) c = Mul (b, b) y = Mul (c, x)", 10),
    ],
)
def test_an_input_of_which_few_numbers_are_left_is_held_to_them(body: str, most: int) -> None:
    _check(_model("int64", body), [np.array([most, -most, 0])], [np.array([0, most + 1]), np.array([60])])


def test_a_bound_of_one_input_is_none_of_another() -> None:
    inputs = "int64[n] x, int64[n] z"
    model = _model(
        "int64", "c = Constant <value_int = 40000000> () a = Mul (x, c) b = Add (z, z) y = Max (a, b)", inputs=inputs
    )
    given = [np.array([53]), np.array([2**29])]
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run(given)[0], [2120000000])


def test_a_product_of_sizes_leaves_an_input_what_no_size_takes() -> None:
    """Each size may be 4,096: four of them would leave an input nothing, where they are 2 here."""
    body = "s = Shape (x) a = Mul (x, s) b = Mul (a, s) c = Mul (b, s) y = Mul (c, s)"
    _check(_model("int64", body), [np.array([3, 100000])], [])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32"])
def test_narrower_inputs_are_held_to_what_becomes_of_them_in_64_bits(kind: str) -> None:
    model = _model(kind, "c = Constant <value_int = 40000000> () a = Cast <to = 7> (x) y = Mul (a, c)", "int64")
    _check(model, [np.array([53, 0, 7], kind)], [np.array([54, 0], kind)])


@pytest.mark.parametrize("to", ["UINT32", "UINT64"])
@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_signed_inputs_that_become_unsigned_may_not_be_negative_where_that_is_another_number(
    kind: str, to: str
) -> None:
    body = f"a = Cast <to = {onnx.TensorProto.DataType.Value(to)}> (x) y = Max (a, a, a)"
    largest = min(np.iinfo(kind).max, 2**31 - 1)
    model = _model(kind, body, to.lower())
    _check(model, [np.array([0, 5, largest], kind)], [np.array([1, -3], kind)])


@pytest.mark.parametrize("preset", ["Openvino", "OrtOpenvino"])
@pytest.mark.parametrize("kind", ["uint32", "uint64"])
def test_quotients_of_unsigned_numbers_have_not_wrapped_around(kind: str, preset: str) -> None:
    if not omb.presets()[preset].availability().usable:
        pytest.skip(f"{preset} is not usable here")
    model = _model(kind, "q = Div (x, d) y = Max (q)", kind, f"{kind}[n] x, {kind}[n] d")
    given = [np.array([7, 2, 40], kind), np.array([2, 3, 5], kind)]
    np.testing.assert_array_equal(omb.presets()[preset].prepare(model).run(given)[0], [3, 0, 8])


_UNSIGNED = pytest.mark.parametrize("kind", ["uint32", "uint64"])
_TYPES = {"uint32": 12, "uint64": 13}
_READERS = ["Div (v, v)", "Mod (v, v)", "Max (v, v, v)", "Less (v, one)", "Cast <to = 1> (v)"]


def _made(kind: str, first: str, reader: str, given: str) -> onnx.ModelProto:
    result = {"Less": "bool", "Cast": "float"}.get(reader.partition(" ")[0], kind)
    constants = (
        f"i = Constant <value_int = 1> () one = Cast <to = {_TYPES[kind]}> (i) "
        f"h = Constant <value_int = 100> () more = Cast <to = {_TYPES[kind]}> (h)"
    )
    return _model(kind, f"{constants} {first} y = {reader}", result, given)


@_UNSIGNED
@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize(
    "first",
    [
        "a = Cast <to = KIND> (f) v = BitwiseNot (a)",
        "a = Cast <to = KIND> (f) v = Sub (a, one)",
        "a = Cast <to = KIND> (f) b = BitwiseNot (a) v = Add (a, b)",
        "a = Cast <to = KIND> (f) b = BitwiseNot (a) c = Concat <axis = 0> (a, b) v = Slice (c, start, end)",
        "a = Cast <to = KIND> (f) b = BitwiseNot (a) v = BitwiseOr (b, a)",
        "s = Shape (f) a = Cast <to = KIND> (s) v = Sub (a, more)",
        "s = Shape (f) b = Sub (s, h) v = Cast <to = KIND> (b)",
    ],
)
def test_unsigned_numbers_made_of_floats_and_sizes_that_may_wrap_around_are_refused(
    kind: str, reader: str, first: str
) -> None:
    first = first.replace("KIND", str(_TYPES[kind]))
    if "Slice" in first:
        first = f"start = Constant <value_ints = [0]> () end = Constant <value_ints = [2]> () {first}"
    with pytest.raises(UnsupportedModelError, match="wrapped around below 0"):
        OpenvinoBackend.prepare(_made(kind, first, reader, "float[n] f"))


@_UNSIGNED
@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize(
    "first",
    [
        "a = Cast <to = KIND> (f) v = Add (a, one)",
        "a = Cast <to = KIND> (f) b = BitwiseNot (a) v = BitwiseAnd (b, more)",
        "s = Shape (f) a = Cast <to = KIND> (s) v = Add (a, more)",
        "s = Shape (f) a = Cast <to = KIND> (s) v = Sub (more, one)",
    ],
)
def test_unsigned_numbers_made_of_floats_and_sizes_that_do_not_wrap_around_run(
    kind: str, reader: str, first: str
) -> None:
    model = _made(kind, first.replace("KIND", str(_TYPES[kind])), reader, "float[n] f")
    x = np.float32([0])
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([x])[0], _right(model, {"f": x}))


@_UNSIGNED
@pytest.mark.parametrize("reader", ["Div (v, more)", "Mod (v, more)", "Less (v, more)", "Cast <to = 1> (v)"])
@pytest.mark.parametrize(
    "first",
    [
        "p = Max (a, b) q = Min (a, b) v = Sub (p, q)",
        "p = Max (a, b) v = Sub (p, b)",
        "p = Min (b, a, one) v = Sub (a, p)",
        "p = Div (a, more) q = Mul (more, p) v = Sub (a, q)",
        "p = Mod (a, more) v = Sub (a, p)",
        "p = BitwiseAnd (b, a) v = Sub (a, p)",
        "p = BitwiseOr (b, a) v = Sub (p, a)",
        "p = ReduceMin (a) v = Sub (a, p)",
        "p = ReduceMax (a) v = Sub (p, a)",
        "c = Greater (a, b) p = Sub (a, b) q = Sub (b, a) v = Where (c, p, q)",
        "c = LessOrEqual (a, b) p = Sub (b, a) v = Where (c, p, one)",
        "p = Identity (a) q = Div (p, more) r = Sub (a, q) v = Sub (a, r)",
    ],
)
def test_differences_that_are_never_below_0_run(kind: str, reader: str, first: str) -> None:
    model = _made(kind, first, reader, f"{kind}[n] a, {kind}[n] b")
    a, b = np.array([0, 1, 5, 99, 2**31 - 1, 2**31 - 1], kind), np.array([7, 1, 2**31 - 1, 3, 0, 2**31 - 2], kind)
    prepared = OpenvinoBackend.prepare(model)
    for given in ((a, b), (b, a)):
        np.testing.assert_array_equal(prepared.run(list(given))[0], _right(model, dict(zip("ab", given, strict=True))))


@_UNSIGNED
@pytest.mark.parametrize(
    "first",
    [
        "p = Max (a, one) q = Min (b, one) r = Max (q, b) v = Sub (p, r)",
        "p = ReduceMin <keepdims = 0> (a) q = Unsqueeze (p, axis) v = Sub (b, q)",
        "p = Div (a, one) q = Mul (more, p) v = Sub (a, q)",
        "p = BitwiseNot (a) q = BitwiseAnd (p, one) v = Sub (p, q)",
        "c = Greater (a, b) p = Sub (b, a) q = Sub (a, b) v = Where (c, p, q)",
        "c = Greater (a, more) p = Sub (a, b) v = Where (c, p, one)",
    ],
)
def test_differences_that_may_be_below_0_are_refused(kind: str, first: str) -> None:
    first = f"axis = Constant <value_ints = [0]> () {first}"
    with pytest.raises(UnsupportedModelError, match="wrapped around below 0"):
        OpenvinoBackend.prepare(_made(kind, first, "Div (v, more)", f"{kind}[n] a, {kind}[n] b"))


@_UNSIGNED
def test_numbers_that_are_cast_to_fewer_bits_before_they_are_compared_are_held_to_those(kind: str) -> None:
    """300 and the smaller 255 become 44 and 255."""
    narrow = "h = Constant <value_int = 255> () c = Cast <to = 4> (h) m = Min (x, c) n = Cast <to = 2> (x) o = Cast <to = 2> (m)"
    body = f"{narrow} a = Cast <to = {_TYPES[kind]}> (n) b = Cast <to = {_TYPES[kind]}> (o) d = Sub (a, b) y = Cast <to = 1> (d)"
    _check(_model("uint16", body, "float"), [np.array([0, 255], np.uint16)], [np.array([300], np.uint16)])


@_UNSIGNED
def test_a_number_that_is_subtracted_from_a_constant_is_held_to_that(kind: str) -> None:
    body = f"c = Constant <value_int = 100> () d = Cast <to = {_TYPES[kind]}> (c) a = Sub (d, x) y = Max (a, a, a)"
    _check(_model(kind, body), [np.array([0, 63, 100], kind)], [np.array([101], kind)])


def test_bits_of_uint32_that_are_shifted_into_the_sign_of_an_int32_are_not_divided() -> None:
    inputs = "uint32[n] x, uint32[n] b"
    model = _model("uint32", 'a = BitShift <direction = "LEFT"> (x, b) y = Div (a, x)', inputs=inputs)
    with pytest.raises(UnsupportedModelError, match="wrapped around below 0"):
        OpenvinoBackend.prepare(model)


@pytest.mark.parametrize("kind", ["int64", "uint32", "uint64"])
@pytest.mark.parametrize("reader", ["Div (v, three)", "Mod (v, three)", "ReduceMax (v)"])
@pytest.mark.parametrize(
    "first", ["Add (a, c)", "Sub (c, a)", "Max (a, c)", "BitwiseOr (a, c)", "BitwiseXor (a, c)", "Where (t, c, a)"]
)
def test_a_size_beside_a_number_that_no_size_is_as_large_as_is_computed_exactly(
    kind: str, reader: str, first: str
) -> None:
    """It was taken for a size, which float32 holds."""
    to = {**_TYPES, "int64": 7}[kind]
    constants = (
        f"i = Constant <value_int = 3> () three = Cast <to = {to}> (i) "
        f"h = Constant <value_int = 40000000> () c = Cast <to = {to}> (h)"
    )
    body = f"{constants} s = Shape (f) a = Cast <to = {to}> (s) t = Less (a, three) v = {first} y = {reader}"
    model = _model(kind, body, inputs="float[m] f")
    prepared = OpenvinoBackend.prepare(model)
    for size in (1, 2, 3, 5, 1000):
        x = np.zeros(size, np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], _right(model, {"f": x}))


@pytest.mark.parametrize("kind", ["int64", "uint32", "uint64"])
@pytest.mark.parametrize("operator", ["Add", "Mul"])
@pytest.mark.parametrize("numbers", [(2000000000, 2000000001), (2, 1000000000), (65536, 65537)])
def test_constants_are_added_and_multiplied_within_int32_or_not_at_all(
    kind: str, operator: str, numbers: tuple[int, int]
) -> None:
    """OpenVINO computes them ahead, and limits the result."""
    a, b = (numpy_helper.from_array(np.array([number], kind), name) for name, number in zip("ab", numbers, strict=True))
    model = _model(kind, f"v = {operator} (a, b) y = BitwiseAnd (x, v)")
    model.graph.initializer.extend([a, b])
    whole = sum(numbers) if operator == "Add" else numbers[0] * numbers[1]
    if (whole % 2**32 if kind == "uint32" else whole) >= 2**31:
        with pytest.raises(UnsupportedModelError, match="its result leaves what int32 holds"):
            OpenvinoBackend.prepare(model)
    else:
        x = np.array([2**31 - 1, 5], kind)
        np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([x])[0], _right(model, {"x": x}))


_ROWS = "axis = Constant <value = int64[1] {1}> ()"


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        pytest.param("uint16[40000] x", "a = Cast <to = 7> (x) y = ReduceSum (a)", id="an input of 16 bits"),
        pytest.param("uint8[40000] x", "a = Cast <to = 7> (x) y = ReduceSumSquare (a)", id="squares"),
        pytest.param(
            "int64[40000] x",
            "h = Constant <value_int = 100000> () l = Constant <value_int = 0> () a = Clip (x, l, h) y = ReduceSum (a)",
            id="behind a Clip",
        ),
        pytest.param(
            "int64[40000] x",
            """c = Constant <value = int64[1] {0}> () s = Shape (x) i = Expand (c, s) h = Constant <value_int = 100000> ()
            a = Min (x, h) b = Max (a, c) y = ScatterElements <reduction = "add"> (c, i, b)""",
            id="more added than there is",
        ),
    ],
)
def test_a_sum_of_more_elements_than_are_assumed_is_counted(inputs: str, body: str) -> None:
    kind, least = inputs.partition("[")[0], 60000 if "16" in inputs else 255 if "8[" in inputs else 100000
    model = _model("int64", body, "int64", inputs)
    _check(model, [np.ones(40000, kind)], [np.full(40000, least, kind)])


@pytest.mark.parametrize(
    ("size", "body"),
    [
        ("5000, 4", f"{_ROWS} y = ReduceSum <keepdims = 0> (x, axis)"),
        ("5000, 4", "axis = Constant <value = int64 {-1}> () y = CumSum (x, axis)"),
        ("n, 4", f"{_ROWS} y = ReduceL1 <keepdims = 0> (x, axis)"),
        ("5000, 4", "w = Constant <value = int64[4, 1] {1, 1, 1, 1}> () y = MatMul (x, w)"),
    ],
)
def test_a_sum_along_an_axis_has_as_many_elements_as_that(size: str, body: str) -> None:
    model = _model("int64", body, inputs=f"int64[{size}] x")
    x = np.full((5000, 4), 2**28)
    _check(model, [x], [x * 2])


def test_a_multiple_of_what_a_number_was_divided_by_is_no_larger_than_that() -> None:
    """The day that a time is of: the last one of int32 was rounded up, and times since 2004 were refused."""
    model = _model("int64", "day = Constant <value_int = 86400> () d = Div (x, day) y = Mul (d, day)")
    x = np.array([1764000000, 86399, 0, -1, -86401, 2**31 - 1, -(2**31)])
    (y,) = OpenvinoBackend.prepare(model).run([x])
    np.testing.assert_array_equal(y, np.trunc(x / 86400) * 86400)


@pytest.mark.parametrize("body", ["y = Sub (x, epoch)", "y = Add (x, one)", "a = Add (x, one) y = Max (a, epoch)"])
def test_the_ends_of_a_bound_are_no_further_in_than_need_be(body: str) -> None:
    """Seconds since 1970 are between 2**30 and 2**31, which was no power of two that both ends could have."""
    constants = "epoch = Constant <value_int = 1577836800> () one = Constant <value_int = 1> ()"
    _check(_model("int64", f"{constants} {body}"), [np.array([1764000000, 0])], [np.array([2**31])])


def test_a_bound_is_the_same_in_each_process() -> None:
    inputs = "int64[n] x, int64[n] z"
    model = _model("int64", "hour = Constant <value_int = 3600> () a = Mul (z, hour) y = Add (x, a)", inputs=inputs)
    prepared = OpenvinoBackend.prepare(model)
    np.testing.assert_array_equal(prepared.run([np.array([2**27]), np.array([14])])[0], [2**27 + 14 * 3600])


@pytest.mark.parametrize("preset_name", ["openvino", "openvino_ep"])
def test_uint32_beside_a_constant_beyond_int32_is_held_to_it(preset_name: str, request: pytest.FixtureRequest) -> None:
    """Equal of a larger number was false, whatever it was."""
    preset: type[omb.Preset] = request.getfixturevalue(preset_name)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 19]> g (uint32[2, 2] x) => (bool[2, 2] y) <uint32[2, 1] c = {4294967295, 255}> { y = Equal (c, x) }"""
    )
    prepared = preset.prepare(model)
    (made,) = prepared.run([np.array([[1, 2**31 - 1], [255, 7]], np.uint32)])
    np.testing.assert_array_equal(made, [[False, False], [True, False]])
    with pytest.raises(omb.InputError, match="2147483647"):
        prepared.run([np.array([[2**32 - 1, 1], [255, 7]], np.uint32)])


def test_a_long_chain_is_looked_through_a_few_times_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look went to the end, whatever it had found: 15 s for 4,096 nodes that the engine refuses in 0.5 s."""
    looked = 0

    def counted(*arguments: Any, visit: Visit, **named: Any) -> Any:
        def look(*node: Any) -> None:
            nonlocal looked
            looked += 1
            visit(*node)

        return follow(*arguments, visit=look, **named)

    monkeypatch.setattr("onnx_multi_backend.adapt.intervals.bounds.follow", counted)
    chain = " ".join(f"v{k + 1} = Add (v{k}, v{k})" for k in range(500))
    model = _model("int64", f"v0 = Identity (x) {chain} y = Identity (v500)")
    OpenvinoBackend.prepare(model)
    assert 0 < looked < 10 * 500


def test_nodes_that_read_no_such_input_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of text has a few nodes that do: the limits of its inputs were searched for through all of it."""
    looked = 0

    def counted(graph: Any, nodes: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal looked
        looked += len(list(nodes))
        return follow(graph, nodes, *arguments, **named)

    monkeypatch.setattr("onnx_multi_backend.adapt.intervals.bounds.follow", counted)
    rest = " ".join(f"w{k + 1} = Relu (w{k})" for k in range(300))
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (int64[2] x, float[2] f) => (int64[2] y, float[2] w300) <int64 many = {{1000}}> {{
        v = Mul (x, x) y = Mul (v, many) w0 = Neg (f) {rest} }}"""
    prepared = OpenvinoBackend.prepare(onnx.parser.parse_model(text))
    assert 0 < looked < 300
    with pytest.raises(omb.InputError, match="overflows"):
        prepared.run([np.array([2000, 1]), np.zeros(2, np.float32)])
