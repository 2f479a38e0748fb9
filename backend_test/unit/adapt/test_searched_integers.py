# SPDX-License-Identifier: Apache-2.0
"""Integers that random graphs showed to come out wrong on OpenVINO, or to be refused in vain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize("made", ["ConvInteger (x, w)", "MatMulInteger (x, v)"])
def test_sums_of_squares_of_what_integer_products_make(openvino: type[omb.Preset], made: str) -> None:
    weights = "uint8[1, 1, 1] w = {255}, uint8[1, 1] v = {255}"
    model = parsed(
        f"(uint8[n, 1, 1] x) => (int32[a, b, c] y) <{weights}> {{ p = {made} y = ReduceSumSquare (p) }}", opset=18
    )
    x = np.uint8([255, 254, 251, 7]).reshape(4, 1, 1)
    (y,) = openvino.prepare(model).run(x)
    assert y.item() == ((x.astype(np.int64) * 255) ** 2).sum().astype(np.int32)


def test_sums_of_integers_out_of_a_sequence(openvino: type[omb.Preset]) -> None:
    model = parsed(
        """(int32[n] a, int32[n] b) => (int32[1] y) <int64 i = {1}> {
        s = SequenceConstruct (a, b) c = SequenceAt (s, i) y = ReduceSum (c) }"""
    )
    x = np.int32([2**24 + 1, 2**25 + 3, 5])
    assert openvino.prepare(model).run([x, x])[0].item() == x.sum()


WIDE = {
    "int64": [0, 5, -3, 2**31, 2**32, 2**32 + 5, -(2**31) - 1, -(2**63), 2**63 - 1, 2**53 + 1],
    "uint64": [0, 5, 2**31, 2**32, 2**32 + 5, 2**63, 2**64 - 1],
    "uint32": [0, 5, 2**31, 2**31 + 5, 2**32 - 1],
}
ASKING = {
    "NonZero (x)": lambda x: np.array(np.nonzero(x)),
    "Equal (x, c)": lambda x: x == 5,
    "Less (c, x)": lambda x: x > 5,
    "GreaterOrEqual (x, c)": lambda x: x >= 5,
    "LessOrEqual (x, x)": lambda x: x <= x,
    "Less (x, x)": lambda x: x < x,
    "Cast <to = 9> (x)": lambda x: x != 0,
    "Cast <to = 1> (x)": lambda x: x.astype(np.float32),
    "CastLike (f, x)": lambda x: np.full(x.shape, 1, x.dtype),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("node", ASKING)
@pytest.mark.parametrize("size", ["fixed", "n"])
def test_inputs_beyond_int32_of_which_little_is_asked(
    openvino: type[omb.Preset], kind: str, node: str, size: str
) -> None:
    x = np.array(WIDE[kind], kind)
    right = ASKING[node](x)
    made = {"b": "bool", "f": "float"}.get(np.dtype(right.dtype).kind, "int64" if "Non" in node else kind)
    shape = "[a, b]" if "Non" in node else f"[{x.size if size == 'fixed' else size}]"
    model = parsed(
        f"""({kind}[{x.size if size == "fixed" else size}] x) => ({made}{shape} y) <{kind} c = {{5}}, float f0 = {{1}}> {{
        s = Shape (x) f = Expand (f0, s) y = {node} }}""",
        opset=18,
    )
    prepared = openvino.prepare(model)
    for part in (x, x[::-1].copy()):
        (y,) = prepared.run([part])
        np.testing.assert_array_equal(y, ASKING[node](part))


@pytest.mark.parametrize("more", ["z = Neg (x)", "z = Identity (x)", "w = Neg (x) z = Add (w, n)"])
def test_inputs_are_held_to_int32_once_something_else_reads_them(openvino: type[omb.Preset], more: str) -> None:
    prepared = openvino.prepare(
        parsed(f"(int64[3] x) => (bool[3] y, int64[3] z) <int64 n = {{1}}> {{ y = Equal (x, n) {more} }}")
    )
    np.testing.assert_array_equal(prepared.run([np.array([1, 2, 3])])[0], [True, False, False])
    with pytest.raises(omb.InputError, match="element"):
        prepared.run([np.array([1, 2, 2**32 + 1])])


KINDS = ["int32", "int64", "uint32", "uint64"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["3, 4", "n, m"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_sums_along_axes_that_are_known_only_at_run_time(
    openvino: type[omb.Preset], kind: str, shape: str, keepdims: int
) -> None:
    made = "b, c" if keepdims else "b"
    model = parsed(
        f"({kind}[{shape}] x, int64[1] axes) => ({kind}[{made}] y) {{ y = ReduceSum <keepdims = {keepdims}> (x, axes) }}",
        opset=18,
    )
    x = (2**20 + GENERATOR.integers(0, 2**18, (3, 4)) + 1).astype(kind)
    (y,) = openvino.prepare(model).run([x, np.array([-1])])
    np.testing.assert_array_equal(y, x.sum(1, keepdims=bool(keepdims), dtype=kind), strict=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("node", "given", "right"),
    [
        ("Gemm <beta = 0.5> (x, w)", "{kind}[4, 3] w", lambda x, w: x @ w),
        (
            'Pad <mode = "reflect"> (x, pads, value)',
            "int64[4] pads, {kind} value",
            lambda x, p, v: np.pad(x, 1, mode="reflect"),
        ),
        ("ReduceL2 (x)", "", lambda x: np.sqrt((x.astype(np.float64) ** 2).sum(keepdims=True)).astype(x.dtype)),
    ],
)
def test_what_counts_for_nothing_refuses_nothing(
    openvino: type[omb.Preset], kind: str, node: str, given: str, right: Callable[..., np.ndarray]
) -> None:
    """Gemm's factor of a matrix that is left out, and the value that a mirrored Pad does not put in."""
    inputs = ", ".join([f"{kind}[3, 4] x", *([given.format(kind=kind)] if given else [])])
    x = (np.arange(12).reshape(3, 4) + 2**12).astype(kind)
    others = {"Gemm": [x.T.copy()], "Pad ": [np.ones(4, np.int64), np.array(5, kind)]}.get(node[:4], [])
    (y,) = openvino.prepare(parsed(f"({inputs}) => ({kind}[b, c] y) {{ y = {node} }}", opset=15)).run([x, *others])
    np.testing.assert_array_equal(y, right(x, *others), strict=True)


def test_squares_of_int32_that_leave_it_are_refused(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(parsed("(int32[2, 2] x) => (int32[b, c] y) { y = ReduceL2 (x) }", opset=18))
    assert prepared.run(np.full((2, 2), 2**13, np.int32))[0].item() == 2**14
    for sign in (1, -1):
        with pytest.raises(omb.InputError, match="overflow"):
            prepared.run(np.full((2, 2), sign * 40000, np.int32))
    free = openvino.prepare(parsed("(int32[2, 2] x) => (int32[2, 2] y) { y = Add (x, x) }", opset=18))
    assert free.run(np.full((2, 2), 2**30, np.int32))[0].max() == -(2**31)


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2", "ReduceProd", "ReduceSum", "ReduceSumSquare"])
def test_a_scalar_constant_is_reduced_too(openvino: type[omb.Preset], operator: str) -> None:
    model = parsed(f"() => (int64 y) <int64 c = {{-300}}> {{ y = {operator} (c) }}", opset=18)
    (y,) = openvino.prepare(model).run([])
    assert y == {"ReduceSumSquare": 90000}.get(operator, 300 if operator in ("ReduceL1", "ReduceL2") else -300)


@pytest.mark.parametrize(
    ("node", "kind", "fits", "leaves"),
    [
        ("ReduceL2 <axes = [1]> (c)", "int32", "30000, 30000, 5, 6", "1, 2, 40000, 40000"),
        ("ReduceL2 (c)", "int64", "20000, 20000, 5, 6", "1, 2, 40000, 40000"),
        ("ReduceProd <axes = [-1]> (c)", "int64", "70000, -2, 3, 70000", "3, 4, 70000, 70000"),
        ("ReduceSumSquare (c)", "int64", "30000, 30000, 5, 6", "1, 2, 40000, 40000"),
        ("ReduceL1 <axes = [0, 1]> (c)", "int64", "1073741824, -1, 2, 3", "2147483647, -1, 2, 3"),
    ],
)
def test_a_constant_reduced_to_what_int32_does_not_hold_is_refused(
    openvino: type[omb.Preset], node: str, kind: str, fits: str, leaves: str
) -> None:
    def model(numbers: str) -> onnx.ModelProto:
        text = f"() => ({kind}[m, n] y) <{kind}[2, 2] c = {{{numbers}}}> {{ y = {node} }}"
        return parsed(text, opset=12)

    (right,) = ReferenceEvaluator(model(fits)).run(None, {})
    np.testing.assert_array_equal(openvino.prepare(model(fits)).run([])[0], right)
    with pytest.raises(omb.UnsupportedModelError, match="leaves what int32 holds"):
        openvino.prepare(model(leaves))


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@pytest.mark.parametrize(
    ("node", "small", "right", "large"),
    [
        ("ReduceMean (x)", 2**28, 2**28, 2**30 + 1),
        ("ReduceL2 (x)", 2**13, 2**14, 40000),
        ("Gemm (x, x)", 2**13, 2**27, 70001),
        ('Einsum <equation = "ij,jk->ik"> (x, x)', 2**13, 2**27, 70001),
        ("Pow (x, two)", 2**14, 2**28, 70001),
        ('ScatterElements <reduction = "add"> (x, i, x)', 2**27, 3 * 2**27, 2**31 - 1),
    ],
)
def test_what_leaves_int32_on_the_way_is_refused(
    openvino: type[omb.Preset], kind: str, node: str, small: int, right: int, large: int
) -> None:
    if node.startswith("Pow") and kind == "uint64":
        pytest.skip("ONNX has no Pow of uint64")
    constants = "int64 two = {2}, int64[2, 2] i = {0, 0, 0, 0}"
    prepared = openvino.prepare(
        parsed(f"({kind}[2, 2] x) => ({kind}[b, c] y) <{constants}> {{ y = {node} }}", opset=18)
    )
    assert prepared.run(np.full((2, 2), small, kind))[0].max() == right
    with pytest.raises(omb.InputError, match="overflows"):
        prepared.run(np.full((2, 2), large, kind))


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("amount", ["x, c", "x, n"])
def test_a_shifted_scalar_is_a_scalar(openvino: type[omb.Preset], kind: str, direction: str, amount: str) -> None:
    model = parsed(
        f"""({kind} x, {kind} n) => ({kind} y) <{kind} c = {{3}}> {{ y = BitShift <direction = "{direction}"> ({amount}) }}"""
    )
    (y,) = openvino.prepare(model).run([np.array(20, kind), np.array(3, kind)])
    np.testing.assert_array_equal(y, np.array(160 if direction == "LEFT" else 2, kind), strict=True)


@pytest.mark.parametrize("amount", [0, 9, 21])
@pytest.mark.parametrize("constant", [True, False])
def test_all_bits_of_uint32_are_shifted_to_the_left(openvino: type[omb.Preset], amount: int, constant: bool) -> None:
    x = np.uint32([3, 5, 2**31, 2**32 - 1, 2**31 + 1])
    n = "uint32 n" if not constant else "uint32 unused"
    model = parsed(
        f"""(uint32[k] x, {n}) => (uint32[k] y) <uint32 c = {{{amount}}}> {{
        y = BitShift <direction = "LEFT"> (x, {"c" if constant else "n"}) }}"""
    )
    (y,) = openvino.prepare(model).run([x, np.array(amount, np.uint32)])
    np.testing.assert_array_equal(y, x << np.uint32(amount))


@pytest.mark.parametrize("kind", WIDE)
def test_constants_beyond_int32_of_which_little_is_asked(openvino: type[omb.Preset], kind: str) -> None:
    a = np.array(WIDE[kind], kind)
    b = a[::-1].copy()
    given = ", ".join(f"{kind}[{a.size}] {name} = {{{', '.join(map(str, x))}}}" for name, x in (("a", a), ("b", b)))
    model = parsed(
        f"() => (int64[p, q] places, bool[{a.size}] less, bool[{a.size}] equal) <{given}> {{"
        " places = NonZero (a) less = Less (a, b) equal = Equal (a, b) }"
    )
    places, less, equal = openvino.prepare(model).run([])
    np.testing.assert_array_equal(places, np.array(np.nonzero(a)))
    np.testing.assert_array_equal(less, a < b)
    np.testing.assert_array_equal(equal, a == b)


@pytest.mark.parametrize("kind", WIDE)
def test_a_sequence_of_wide_integers_is_counted(openvino: type[omb.Preset], kind: str) -> None:
    prepared = openvino.prepare(
        parsed(
            f"({kind}[n] x, {kind}[n] z) => (int64 y) {{ s = SequenceConstruct (x, z) y = SequenceLength (s) }}",
            opset=13,
        )
    )
    x = np.array(WIDE[kind], kind)
    assert prepared.run([x, x])[0].item() == 2


def test_a_sequence_is_counted_of_integers_that_are_read_elsewhere(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(
        parsed(
            """(uint32[n] x, uint32[n] z, int64[1, 1] i) => (int64 c, uint32[n] y) <uint32[1] u = {3}> {
            s = SequenceConstruct (x, z, x) c = SequenceLength (s) y = ScatterND (x, i, u) }""",
            opset=15,
        )
    )
    count, scattered = prepared.run([np.array([1, 5], np.uint32), np.array([2, 6], np.uint32), np.array([[1]])])
    assert count == 3
    np.testing.assert_array_equal(scattered, [1, 3])


def test_a_constant_that_no_rewriting_helps_is_what_refuses_the_model(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="its constant 'c' is beyond what int32 holds"):
        openvino.prepare(
            parsed(f"(int64[2] x, bool[2] b) => (int64[2] y) <int64 c = {{{-(2**59)}}}> {{ y = Where (b, x, c) }}")
        )


@pytest.mark.parametrize("other", ["ReduceMax <axes = [1], keepdims = 0> (z)", "Exp (z)"])
def test_a_model_of_an_old_opset_is_lifted_though_one_node_is_right_there(
    openvino: type[omb.Preset], other: str
) -> None:
    """Lifted, each node can be helped; in opset 7, one cannot be helped and the other is left as it is."""
    text = f"(int32[3] x, int32[3] y, float[2, 2] z) => (bool[3] e, float[...] w) {{ w = {other} e = Equal (x, y) }}"
    made = parsed(text.replace("[...] w", " w"), 7)
    made.graph.output[1].type.tensor_type.ClearField("shape")
    x, z = np.int32([2**24, 2**24 + 1, 5]), np.float32([[1, 2], [4, 3]])
    got, _ = openvino.prepare(made).run([x, x + np.int32([1, 0, 0]), z])
    np.testing.assert_array_equal(got, [False, True, True])


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_a_scalar_that_is_shifted_beside_a_scan_stays_one(
    openvino: type[omb.Preset], kind: str, direction: str
) -> None:
    """The model is rewritten for the Scan, and the shift was left as it was then."""
    model = parsed(
        f"""(float[n, 2] x, bool[1] b, int32[m] i) => ({kind} y, int64 s, bool[k] z) <{kind} c = {{12}}, {kind} d = {{2}}> {{
        y = BitShift <direction = "{direction}"> (c, d)
        q = SequenceConstruct (i, i, i) s = SequenceLength (q)
        z = Scan <num_scan_inputs = 1, scan_output_directions = [1], body = r (bool p) => (bool v) {{ u = Log (x) v = Identity (p) }}> (b) }}""",
        opset=11,
    )
    given = {"x": np.ones((1, 2), np.float32), "b": np.array([True]), "i": np.ones(2, np.int32)}
    shifted = openvino.prepare(model).run(given)[0]
    np.testing.assert_array_equal(shifted, np.array(48 if direction == "LEFT" else 3, kind), strict=True)


@pytest.mark.parametrize(("kind", "shift"), [("uint64", 19), ("uint32", 7)])
def test_a_constant_that_is_shifted_beyond_int32_is_refused(openvino: type[omb.Preset], kind: str, shift: int) -> None:
    nodes = 'y = BitShift <direction = "LEFT"> (c, d) z = Relu (x)'
    for amount in (shift, 2):
        model = parsed(
            f"(float[n] x) => ({kind}[2] y, float[n] z) <{kind}[2] c = {{16777217, 5}}, {kind}[2] d = {{{amount}, 3}}> {{ {nodes} }}"
        )
        if amount == shift:
            with pytest.raises(omb.UnsupportedModelError, match="BitShift"):
                openvino.prepare(model)
        else:
            (found, _) = openvino.prepare(model).run([np.ones(1, np.float32)])
            np.testing.assert_array_equal(found, np.array([16777217 << 2, 40], kind), strict=True)


@pytest.mark.parametrize("node", ["Cast <to = 13> (c)", "Sub (t, u)"])
def test_a_default_is_a_constant_to_openvino(openvino: type[omb.Preset], node: str) -> None:
    model = parsed(
        f"""(float[n] x, int64[2] c, uint64[2] t) => (uint64[2] y, float[n] z)
        <int64[2] c = {{-2, 3}}, uint64[2] t = {{1, 3}}, uint64 u = {{2}}> {{ y = {node} z = Relu (x) }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="its result leaves what int32 holds"):
        openvino.prepare(model)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(("kind", "number"), [("uint8", 14), ("uint16", 60_000)])
@pytest.mark.parametrize("amount", ["c", "n"])
def test_a_scalar_that_is_shifted_beyond_its_type_wraps_around(
    openvino: type[omb.Preset], kind: str, number: int, amount: str, opset: int
) -> None:
    model = parsed(
        f"""({kind} x, {kind} n) => ({kind} y) <{kind} c = {{7}}> {{ y = BitShift <direction = "LEFT"> (x, {amount}) }}""",
        opset=opset,
    )
    shifted = openvino.prepare(model).run([np.array(number, kind), np.array(7, kind)])[0]
    np.testing.assert_array_equal(shifted, np.array(number, kind) << np.array(7, kind), strict=True)


@pytest.mark.parametrize("of", ["ReduceL2", "ReduceSumSquare"])
def test_squares_of_what_is_cropped_at_run_time(openvino: type[omb.Preset], of: str) -> None:
    """The numbers do not come of the sizes."""
    model = parsed(
        f"(int32[3, 5] x, int64[2] s) => (int32 y) {{ v = CenterCropPad (x, s) y = {of} <keepdims = 0> (v) }}"
    )
    prepared = openvino.prepare(model)
    for sizes in ([2, 3], [4, 7]):
        (y,) = prepared.run([np.full((3, 5), 7, np.int32), np.int64(sizes)])
        squares = 49 * min(sizes[0], 3) * min(sizes[1], 5)
        assert y == (squares if of == "ReduceSumSquare" else int(np.sqrt(squares)))


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("constant", ["value = int64[2] {-7, 1}", "value_ints = [-7, 1]", "value = int32[2] {-7, 1}"])
@pytest.mark.parametrize("cast", ["CastLike (c, x)", "Cast <to = {}> (c)"])
def test_negative_constants_that_become_unsigned(
    openvino: type[omb.Preset], kind: str, constant: str, cast: str
) -> None:
    """OpenVINO limits them to int32."""
    to = {"uint32": onnx.TensorProto.UINT32, "uint64": onnx.TensorProto.UINT64}[kind]
    model = parsed(
        f"({kind}[1] x) => ({kind}[2] y, {kind}[1] z) {{ c = Constant <{constant}> () y = {cast.format(to)} z = Identity (x) }}"
    )
    with pytest.raises(omb.UnsupportedModelError, match="leaves what int32 holds"):
        openvino.prepare(model)
