# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO's frontend takes in a wrong form is put right before it is compiled, in branches and loops too."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import onnx.parser
import onnx.reference
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

NAN = np.float32([np.nan, 1, np.nan, -np.inf, 2])
OTHER = np.float32([1, np.nan, np.nan, np.nan, 1])


@pytest.mark.parametrize(("operator", "right"), [("Greater", [0, 0, 0, 0, 1]), ("GreaterOrEqual", [0, 0, 0, 0, 1])])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_nothing_is_greater_than_nan(openvino: type[omb.Preset], operator: str, right: list[int], dtype: str) -> None:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [models.tensor(name, [None], kind) for name in "ab"]
    model = models.one_node(operator, infos, [models.tensor("y", [None], onnx.TensorProto.BOOL)], opset=16)
    prepared = openvino.prepare(model)
    np.testing.assert_array_equal(prepared.run([NAN.astype(dtype), OTHER.astype(dtype)])[0], np.array(right, bool))
    (change,) = (a for a in prepared.adaptations if a.pass_name == "mend_frontend")
    assert change.node.startswith("Greater")
    assert not openvino.prepare(model, adapt=False).adaptations


def test_integers_are_compared_as_they_are(openvino: type[omb.Preset]) -> None:
    infos = [models.tensor(name, [2], onnx.TensorProto.INT32) for name in "ab"]
    model = models.one_node("Greater", infos, [models.tensor("y", [2], onnx.TensorProto.BOOL)], opset=16)
    assert not [a for a in openvino.prepare(model).adaptations if a.pass_name == "mend_frontend"]


BODIES = {
    "If": """g (float[n] a, float[n] b, bool c) => (bool[n] y) {
        y = If (c) <then_branch = t () => (bool[n] p) { p = Greater (a, b) },
                    else_branch = e () => (bool[n] q) { q = GreaterOrEqual (a, b) }> }""",
    "Loop": """g (float[n] a, float[n] b, bool c) => (bool[n] y) {
        count = Constant <value = int64 {2}> ()
        start = Equal (b, b)
        y = Loop (count, c, start) <body = t (int64 i, bool go, bool[n] before) => (bool on, bool[n] after) {
            on = Identity (go) now = Greater (a, b) after = And (now, before) }> }""",
}


@pytest.mark.parametrize("body", BODIES)
def test_branches_and_loop_bodies_are_mended_too(openvino: type[omb.Preset], body: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {BODIES[body]}')
    prepared = openvino.prepare(model)
    assert any(a.pass_name == "mend_frontend" for a in prepared.adaptations)
    result = prepared.run({"a": NAN, "b": OTHER, "c": np.array(True)})[0]
    np.testing.assert_array_equal(result, np.array([0, 0, 0, 0, 1], bool))


@pytest.mark.parametrize("largest", [0, 1])
def test_among_equal_values_the_lower_index_comes_first(openvino: type[omb.Preset], largest: int) -> None:
    infos = [models.tensor("x", [None, None]), models.tensor("k", [1], onnx.TensorProto.INT64)]
    made = [models.tensor("v", None), models.tensor("i", None, onnx.TensorProto.INT64)]
    model = models.one_node("TopK", infos, made, opset=24, largest=largest)
    prepared = openvino.prepare(model)
    for columns in (40, 7):
        x = np.random.default_rng(columns).integers(0, 3, (5, columns)).astype(np.float32)
        _, indices = prepared.run([x, np.int64([6])])
        order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :6]
        np.testing.assert_array_equal(indices, order)


def test_a_hardmax_beside_a_comparison_is_prepared(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] h, bool[n] y) {
            h = Hardmax <axis = 0> (x)
            y = If (c) <then_branch = t () => (bool[n] p) { p = Greater (x, h) },
                        else_branch = e () => (bool[n] q) { q = Less (x, h) }> }"""
    )
    x = np.float32([1, 3, 2, 3, 3, 0])
    hard, _ = openvino.prepare(model).run({"x": x, "c": np.array(True)})
    np.testing.assert_array_equal(hard, np.float32([0, 1, 0, 0, 0, 0]))


def empty(*shape: int, dtype: type = np.float32) -> onnx.NodeProto:
    return models.node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.zeros(shape, dtype)))


BRANCH = onnx.helper.make_graph([empty(0, 3), models.node("Exp", ["c"], ["p"])], "t", [], [models.tensor("p", None)])
#: The nodes, and the shape of what comes out for two numbers.
EMPTY = {
    "computed with": ([empty(1, 0, 3), models.node("Exp", ["c"], ["y"])], (1, 0, 3)),
    "concatenated": ([empty(0), models.node("Concat", ["c", "x"], ["y"], axis=0)], (2,)),
    "indices": ([empty(2, 0, dtype=np.int64), models.node("Gather", ["x", "c"], ["y"])], (2, 0)),
    "axes": ([empty(0, dtype=np.int64), models.node("ReduceSum", ["x", "c"], ["y"])], (1,)),
    "in a branch": (
        [
            models.node("ReduceMax", ["x"], ["m"], keepdims=0),
            models.node("Cast", ["m"], ["b"], to=onnx.TensorProto.BOOL),
            models.node("If", ["b"], ["y"], then_branch=BRANCH, else_branch=BRANCH),
        ],
        (0, 3),
    ),
}


@pytest.mark.parametrize("form", EMPTY)
@pytest.mark.parametrize("stored", [False, True])
def test_a_constant_without_elements_keeps_its_shape(openvino: type[omb.Preset], form: str, stored: bool) -> None:
    nodes, shape = EMPTY[form]
    constants = {}
    if stored and nodes[0].op_type == "Constant":
        constants = {"c": onnx.numpy_helper.to_array(nodes[0].attribute[0].t)}
        nodes = nodes[1:]
    made = models.model(nodes, [models.tensor("x", ["n"])], [models.tensor("y", None)], initializers=constants)
    assert openvino.prepare(made).run([np.float32([1, 2])])[0].shape == shape


def test_a_loop_known_to_make_no_step_has_no_rows(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[3] x) => (float[3] v, float[m, 3] y) <int64 k = {0}, bool go = {1}> {
            v, y = Loop (k, go, x) <body = b (int64 i, bool c, float[3] a) => (bool d, float[3] e, float[3] f) {
                d = Identity(c) e = Exp(a) f = Neg(a) }> }"""
    )
    x = np.float32([1, 2, 3])
    v, y = openvino.prepare(model).run([x])
    np.testing.assert_array_equal(v, x)
    assert y.shape == (0, 3)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_quotients_of_integer_constants_are_cut_off_towards_zero(openvino: type[omb.Preset], kind: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g ({kind}[3] x) => ({kind}[3] y, {kind}[3] z)
        <{kind}[3] a = {{4, -6, -18}}, {kind} b = {{-9}}, {kind} one = {{1}}> {{ c = Sub (b, one) y = Div (a, c) z = Div (x, b) }}"""
    )
    x = np.array([4, -4, -19], kind)
    prepared = openvino.prepare(model)
    assert len([a for a in prepared.adaptations if a.pass_name == "mend_frontend"]) == 1
    y, z = prepared.run([x])
    np.testing.assert_array_equal(y, np.array([0, 0, 1], kind))
    np.testing.assert_array_equal(z, np.array([0, 0, 2], kind))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
@pytest.mark.parametrize("made", ["c = Expand (k, sizes)", "e = Neg (k) c = Neg (e)"])
def test_so_are_those_in_a_loop_of_what_is_a_constant_outside(openvino: type[omb.Preset], made: str, kind: str) -> None:
    """OpenVINO takes the body for the loop, and folds it."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g () => ({kind}[1, 3] y)
        <{kind}[1, 3] k = {{-12, 3, 19}}, {kind}[1, 1] d = {{17}}, int64[2] sizes = {{1, 1}}, int64 n = {{2}}, bool go = {{1}}> {{
            {made} y = Loop (n, go, c) <body = b (int64 i, bool more, {kind}[1, 3] s) => (bool again, {kind}[1, 3] q) {{
                again = Identity (more) q = Div (c, d) }}> }}"""
    )
    (y,) = openvino.prepare(model).run([])
    np.testing.assert_array_equal(y, np.array([[0, 0, 1]], kind))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
@pytest.mark.parametrize(
    ("made", "shape"),
    [
        ("c = ConstantOfShape <value = $kind[1] {-10}> (sizes)", [2, 5]),
        ("c = Expand (k, sizes)", [2, 5]),
        ("e = Expand (k, sizes) c = Neg (e)", [2, 5]),
    ],
)
def test_so_are_those_of_a_constant_of_a_shape_that_a_run_tells(
    openvino: type[omb.Preset], made: str, shape: list[int], kind: str
) -> None:
    """OpenVINO divides before it broadcasts, which it does beforehand."""
    divisors = [-2, 6, 16, 10, 13, -6, -6, 12, 7, -8]
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g (int64[2] sizes) => ({kind}[a, b] y)
        <{kind}[1] k = {{-10}}, {kind}[2, 5] d = {{{", ".join(map(str, divisors))}}}> {{ {made.replace("$kind", kind)} y = Div (c, d) }}"""
    )
    dividend = 10 if "Neg" in made else -10
    right = np.trunc(dividend / np.array(divisors)).reshape(2, 5)
    np.testing.assert_array_equal(openvino.prepare(model).run([np.array(shape)])[0], right)


def test_the_groups_that_the_frontend_divides_channels_into_are_left_alone(openvino: type[omb.Preset]) -> None:
    """A Conv with groups becomes a Divide of its weights' shape, which has nothing to do with the Div of the model."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[1, 2, 4, 4] x, float[2, 1, 1, 1] w) => (float[1, 2, 4, 4] y)
        <float two = {2}> { c = Conv <group = 2> (x, w) y = Div (c, two) }"""
    )
    prepared = openvino.prepare(model)
    assert not prepared.adaptations
    x = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    np.testing.assert_array_equal(prepared.run([x, np.full((2, 1, 1, 1), 2, np.float32)])[0], x)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    "nodes",
    [
        "w = Softmax <axis = 1> (v)",
        "f = Flatten <axis = 1> (v) w = Softmax <axis = 1> (f)",
        "k = Constant <value = int64[2] {3, 2}> () r = Reshape (v, k) w = Softmax <axis = 1> (r)",
    ],
)
def test_a_softmax_in_a_loop_leaves_what_the_next_step_reads(preset: type[omb.Preset], nodes: str, opset: int) -> None:
    """OpenVINO computes it in place: the second step had the Softmax of the first one's result."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[3, 2] v, float[3, 2] x, int64 n) => (float[3, 2] y) {{
            go = Constant <value = bool {{1}}> ()
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[3, 2] s) => (bool d, float[3, 2] t) {{
                d = Identity (c) {nodes} t = Add (w, s) }}> }}"""
    )
    prepared = preset.prepare(model, fallback="full") if preset.name == "OrtOpenvino" else preset.prepare(model)
    v, x = np.float32([[1, 0], [0, 1], [0, 0]]), np.zeros((3, 2), np.float32)
    once = np.exp(v) / np.exp(v).sum(1, keepdims=True)
    for count in (3, 1, 0, 2):
        np.testing.assert_allclose(prepared.run([v, x, np.array(count)])[0], count * once, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float", "int32"])
@pytest.mark.parametrize(
    "scatter",
    [
        'ScatterElements <axis = 0, reduction = "add"> (v, i, u)',
        'ScatterND <reduction = "add"> (v, j, u)',
    ],
)
def test_a_scatter_in_a_loop_leaves_what_the_next_step_reads(preset: type[omb.Preset], kind: str, scatter: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g ({kind}[3, 2] v, {kind}[3, 2] x, int64 n) => ({kind}[3, 2] y)
        <{kind}[3, 2] u = {{2, 3, 4, 5, 6, 7}}, int64[3, 2] i = {{0, 1, 1, 2, 0, 1}}, int64[3, 1] j = {{1, 2, 0}}> {{
            go = Constant <value = bool {{1}}> ()
            y = Loop (n, go, x) <body = b (int64 k, bool c, {kind}[3, 2] s) => (bool d, {kind}[3, 2] t) {{
                d = Identity (c) w = {scatter} t = Add (w, s) }}> }}"""
    )
    prepared = preset.prepare(model, fallback="full") if preset.name == "OrtOpenvino" else preset.prepare(model)
    dtype = np.float32 if kind == "float" else np.int32
    v, x = np.array([[0, 0], [0, 0], [7, 5]], dtype), np.zeros((3, 2), dtype)
    once = v.copy()
    u = np.arange(2, 8).reshape(3, 2).astype(dtype)
    if scatter.startswith("ScatterND"):
        np.add.at(once, [1, 2, 0], u)
    else:
        np.add.at(once, (np.array([[0, 1], [1, 2], [0, 1]]), np.array([[0, 1]] * 3)), u)
    for count in (3, 1, 0, 2):
        np.testing.assert_array_equal(prepared.run([v, x, np.array(count)])[0], count * once)


def test_a_sum_of_exponentials_beside_a_maximum_keeps_its_rows_of_infinities(openvino: type[omb.Preset]) -> None:
    """OpenVINO's frontend writes a ReduceMax of its own for ReduceLogSumExp, which has to stay finite."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[n, 2] x) => (float[n] y, float[n] z) <int64[1] a = {1}> {
            y = ReduceLogSumExp <keepdims = 0> (x, a) z = ReduceMax <keepdims = 0> (x, a) }""")
    x = np.float32([[-np.inf, -np.inf], [0, 0], [-np.inf, np.nan]])
    y, z = openvino.prepare(model).run([x])
    np.testing.assert_allclose(y[:2], [-np.inf, np.log(2)], rtol=1e-6)
    np.testing.assert_array_equal(z, [-np.inf, 0, np.nan])


@pytest.mark.parametrize(
    "beside", ["r = ReduceSum (x, none)", "q = ConstantOfShape (none) r = Add (x, q)", "r = Abs (x)"]
)
@pytest.mark.parametrize("indices", ["i = ConstantOfShape <value = int64[1] {0}> (zero)", "i = Slice (list, one, one)"])
def test_what_is_gathered_by_indices_of_constants_may_be_nothing(
    openvino: type[omb.Preset], fresh: Callable[..., str], indices: str, beside: str
) -> None:
    """OpenVINO works the indices out, and divides by how many there are: whatever else without elements the model holds."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 2] x) => (float[a, b] y, float[c, d] r)
        <int64[0] none = {{}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[3] list = {{0, 1, 1}}> {{
            {indices} y = Gather (x, i) {beside} }}"""
    told = fresh(
        "import numpy as np, onnx.parser, onnx_multi_backend as omb\n"
        f"prepared = omb.OpenvinoBackend.prepare(onnx.parser.parse_model({text!r}))\n"
        "print(prepared.run([np.ones((2, 2), np.float32)])[0].shape)"
    )
    assert told == "(0, 2)"


@pytest.mark.parametrize("opset", [13, 18])
def test_rows_of_no_step_have_the_sizes_that_the_body_declares(openvino: type[omb.Preset], opset: int) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (int64 n, bool c, float[p, q] x) => (float[2, 3] s, int64[1] size) <int64[1] zero = {{0}}, int64[1] one = {{1}}> {{
            o = Loop (n, c) <body = b (int64 i, bool again) => (bool more, float[2, 3] r) {{ more = Identity (again) r = Relu (x) }}>
            s = ReduceSum <keepdims = 0> (o, zero) shape = Shape (x) size = Gather (shape, one) }}""")
    prepared = openvino.prepare(model)
    for steps in (0, 2, 0):
        found, size = prepared.run([np.int64(steps), np.bool_(True), np.ones((2, 3), np.float32)])
        np.testing.assert_array_equal(found, np.full((2, 3), steps, np.float32))
        assert size.tolist() == [3]


@pytest.mark.parametrize(("through", "cut"), [("INT64", True), ("UINT8", True), ("BOOL", True), ("DOUBLE", False)])
def test_an_input_that_is_cast_there_and_back_is_cut_as_onnx_asks(
    openvino: type[omb.Preset], through: str, cut: bool
) -> None:
    """OpenVINO drops both Casts where it computes both types in one; numbers that come back from integers are whole."""
    to = onnx.TensorProto.DataType.Value(through)
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g (float[n, 2] x) => (float[n, 2] y)
        {{ c = Cast <to = {to}> (x) y = Cast <to = 1> (c) }}"""
    )
    prepared = openvino.prepare(model)
    assert any(a.pass_name == "mend_frontend" for a in prepared.adaptations) is not cut
    for rows in (64, 2, 30):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2) % 100 + np.float32(0.6)
        right = x.astype(onnx.helper.tensor_dtype_to_np_dtype(to)).astype(np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], right)


@pytest.mark.parametrize(
    "nothing", ["ConstantOfShape (sizes)", "Expand (one, sizes)", "Gather (two, none)", "Slice (two, zero, zero)"]
)
@pytest.mark.parametrize("sum_", ["Add (p, b)", "Add (b, p)"])
def test_a_product_by_a_constant_without_elements_and_a_sum(
    openvino: type[omb.Preset], nothing: str, sum_: str
) -> None:
    """Compiling it ended the process where the constant is the first operand."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[n] a, float[n] b) => (float[k, m] y)
        <int64[2] sizes = {{0, 1}}, float one = {{1}}, float[2, 1] two = {{1, 2}}, int64[1] zero = {{0}}, int64[0] none = {{}}> {{
        c = {nothing} p = Mul (c, a) y = {sum_} }}"""
    )
    prepared = openvino.prepare(model)
    assert any("without elements" in a.change for a in prepared.adaptations)
    assert prepared.run([np.ones(3, np.float32)] * 2)[0].shape == (0, 3)


def test_a_rewritten_product_of_nothing_and_a_sum(openvino: type[omb.Preset]) -> None:
    """The product of integers, whose first operand has no elements, written in other operators."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 25]> g (int64[0, n] b, int64 c) => (int64[k, m] y) <int64[0, 0] a = {}> {
        y = Gemm (a, b, c) }"""
    )
    result = openvino.prepare(model).run([np.zeros([0, 3], np.int64), np.array(7)])[0]
    assert (result.shape, result.dtype) == ((0, 3), np.int64)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "float"])
@pytest.mark.parametrize("sizes", ["1", "1, 1"])
@pytest.mark.parametrize("high", [4, 9])
@pytest.mark.parametrize(
    "nodes", ["y = Clip (c, low, high)", 'y = Clip (c, "", high)', "m = Max (low, c) y = Min (high, m)"]
)
def test_one_number_between_limits_keeps_its_rank(
    openvino: type[omb.Preset], kind: str, sizes: str, high: int, nodes: str
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g () => ({kind}[{sizes}] y)
        <{kind}[{sizes}] c = {{5}}, {kind} low = {{1}}, {kind} high = {{{high}}}> {{ {nodes} }}"""
    )
    result = openvino.prepare(model).run([])[0]
    assert (result.shape, result.item()) == (tuple(map(int, sizes.split(","))), min(5, high))


@pytest.mark.parametrize("axis", range(5))
@pytest.mark.parametrize("sizes", [(4, 2, 3, 0), (2, 4, 3, 0), (4, 0, 3, 2), (0, 4, 2, 1)])
@pytest.mark.parametrize("behind", ["Identity (f)", "Transpose (f)", "Concat <axis = 1> (f, f)"])
def test_what_is_flattened_without_elements_has_none(
    openvino: type[omb.Preset], axis: int, sizes: tuple[int, ...], behind: str
) -> None:
    """The result held memory that was never written."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float{list(sizes)} x) => (float[a, b] y) {{
        f = Flatten <axis = {axis}> (x) y = {behind} }}"""
    )
    x = np.zeros(sizes, np.float32)
    flat = x.reshape(math.prod(sizes[:axis]), math.prod(sizes[axis:]))
    right = {"I": flat, "T": flat.T, "C": np.concatenate([flat, flat], 1)}[behind[0]]
    assert openvino.prepare(model).run([x])[0].shape == right.shape


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float"])
def test_extremes_of_constants_that_branches_read(openvino: type[omb.Preset], kind: str, operator: str) -> None:
    """OpenVINO refuses what is computed of constants of bfloat16, beside a guard against infinities."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 17]> g (bool c) => ({kind}[1, 1] y, {kind}[1, 1] z) {{
        y = {operator} (k)
        z = If (c) <then_branch = t () => ({kind}[1, 1] a) {{ a = Identity (y) }}, else_branch = e () => ({kind}[1, 1] b) {{ b = Identity (y) }}> }}"""
    )
    elem_type = model.graph.output[0].type.tensor_type.elem_type
    model.graph.initializer.append(onnx.helper.make_tensor("k", elem_type, [2, 2], [0.5, -2, 3, 1]))
    right = 3 if operator == "ReduceMax" else -2
    prepared = openvino.prepare(model)
    for choice in (True, False):
        for found in prepared.run([np.array(choice)]):
            assert found.astype(np.float32).tolist() == [[right]]


SUMS = {
    "Mean": "a = Mean (c, e, c)",
    "Sum": "a = Sum (c, e, c)",
    "Add and Sub": "b = Add (c, e) a = Sub (b, c)",
    "Neg": "b = Neg (c) d = Add (b, e) a = Add (d, c)",
    "Cast": "b = Cast <to = 11> (f) d = Add (b, b) a = Add (d, b)",
    "CastLike": "b = CastLike (f, x) d = Add (b, b) a = Add (d, b)",
    "EyeLike": "b = EyeLike <dtype = 11> (m) d = Add (b, b) g = Add (d, b) a = ReduceSum <keepdims = 0> (g)",
    "HannWindow": "b = HannWindow <output_datatype = 11> (three) d = Add (b, b) a = Add (d, b)",
}


@pytest.mark.parametrize("form", SUMS)
def test_sums_of_float64_constants_come_to_an_end(openvino: type[omb.Preset], form: str) -> None:
    """In a process of its own, which the engine would keep for ever."""
    constants = "double[3] c = {1, 2, 3}, double[3] e = {0.5, 2, -3}, float[3] f = {1, 2, 4}"
    constants += ", float[2, 2] m = {1, 1, 1, 1}, int64 three = {3}"
    text = f'<ir_version: 8, opset_import: ["": 17]> g (double[3] x) => (double[3] y) <{constants}> {{ {SUMS[form]} y = Mul (a, x) }}'
    code = f"""
import numpy as np, onnx, onnx_multi_backend as omb
prepared = omb.prepare(onnx.parser.parse_model({text!r}), preset="Openvino")
(found,) = prepared.run([np.array([1.0, 2.0, -1.0])])
print("computed in float32" in [a.change for a in prepared.adaptations], *found.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    right = onnx.reference.ReferenceEvaluator(onnx.parser.parse_model(text)).run(
        None, {"x": np.array([1.0, 2.0, -1.0])}
    )
    assert done.stdout.startswith("True "), done.stderr
    np.testing.assert_allclose(list(map(float, done.stdout.split()[1:])), right[0], rtol=1e-6)


def test_the_difference_of_two_large_constants_is_computed_as_it_is(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n] x) => (float[n] y) <double[1] a = {1e300}, double[1] b = {1e300}> {
        d = Sub (a, b) f = Cast <to = 1> (d) y = Add (x, f) }"""
    )
    np.testing.assert_array_equal(openvino.prepare(model).run([np.float32([1, 2])])[0], [1, 2])


INFINITE = {
    "a product": "a = Mul (x, two) y = IsInf $signs (a)",
    "an input": "y = IsInf $signs (x)",
    "in a branch": """y = If (c) <then_branch = t () => (bool[$n] z) { a = Neg (x) b = Neg (a) z = IsInf $signs (b) },
        else_branch = e () => (bool[$n] u) { u = IsNaN (x) }>""",
    "in a loop": """none = IsNaN (x) y = Loop (turns, c, none) <body = l (int64 i, bool go, bool[$n] s) => (bool on, bool[$n] z) {
        on = Identity (go) a = Abs (x) b = Mul (a, x) z = IsInf $signs (b) }>""",
}


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
@pytest.mark.parametrize("n", ["5", "n"])
@pytest.mark.parametrize(
    "signs", ["", "<detect_negative = 0>", "<detect_positive = 0>", "<detect_negative = 0, detect_positive = 0>"]
)
@pytest.mark.parametrize("form", INFINITE)
def test_what_is_infinite_is_told(openvino: type[omb.Preset], form: str, signs: str, n: str, kind: str) -> None:
    body = INFINITE[form].replace("$signs", signs).replace("$n", n)
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 20]> g ({kind}[{n}] x, bool c) => (bool[{n}] y, bool d)
        <int64 turns = {{2}}> {{ one = Constant <value_float = 2.0> () two = CastLike (one, x) {body} d = Not (c) }}"""
    )
    x = np.array(
        [-0.6, np.nan, np.inf, 1.5, -np.inf],
        onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type),
    )
    right = (np.isposinf(x) & ("detect_positive" not in signs)) | (np.isneginf(x) & ("detect_negative" not in signs))
    np.testing.assert_array_equal(openvino.prepare(model).run([x, np.array(True)])[0], right)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("shape", ["1, 1", "1, 2", "3, 2"])
@pytest.mark.parametrize("product", ["Mul (x, w)", "Mul (w, x)"])
@pytest.mark.parametrize("read", ["Gather <axis = 0> (p, i)", "Gather <axis = 1> (p, i)", "Compress <axis = 1> (p, m)"])
@pytest.mark.parametrize("to", [1, 6])
def test_a_product_of_a_constant_that_is_cast_is_no_weights(
    openvino: type[omb.Preset], to: int, read: str, product: str, shape: str, kind: str
) -> None:
    count = math.prod(map(int, shape.split(", ")))
    declared = {1: "float", 6: "int32"}[to]
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g ({declared}[3, 2] x, int64[n] i, bool[2] m) => ({declared}[a, b] y, bool[2] o, int64[n] j)
        <{kind}[{shape}] c = {{{", ".join("2" * count)}}}> {{ w = Cast <to = {to}> (c) p = {product} y = {read} o = Not (m) j = Neg (i) }}"""
    )
    x = np.arange(1, 7).reshape(3, 2).astype(onnx.helper.tensor_dtype_to_np_dtype(to))
    found = openvino.prepare(model).run([x, np.array([1]), np.array([False, True])])[0]
    np.testing.assert_array_equal(found, 2 * (x[1:2] if "axis = 0" in read else x[:, 1:]))


def test_stored_rows_with_scales_of_their_own_beside_a_quantized_value(openvino: type[omb.Preset]) -> None:
    """Their cast was moved behind the scales, which are given axes, and OpenVINO then refused the model."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[A, B, C, 3] x) => (uint8[P, Q, R, S] q, float[I, J, K, L] y)
        <float s = {0.02}, uint8 z = {128}, float[3] scales = {0.5, 0.25, 2}, int8[3, 1, 2, 1] k = {-12, 15, -12, -13, 6, -7}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear <axis = 0> (k, scales) y = Transpose <perm = [0, 2, 3, 1]> (d) }"""
    )
    rep = openvino.prepare(model)
    assert not rep.adaptations
    y = rep.run(np.zeros((1, 2, 2, 3), np.float32))[1]
    np.testing.assert_array_equal(y.ravel(), np.float32([-6, 7.5, -3, -3.25, 12, -14]))


@pytest.mark.parametrize("cast", ["Cast <to = 7> (x)", "CastLike (x, like)"])
def test_what_a_cast_makes_zero_is_not_found(openvino: type[omb.Preset], cast: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x, int64[K] like) => (int64[A, B] y) {{ v = {cast} y = NonZero (v) }}"""
    )
    found = openvino.prepare(model).run([np.float32([[0.4, 1.5, 0], [0, -0.3, 2]]), np.array([1])])[0]
    np.testing.assert_array_equal(found, [[0, 1], [1, 2]])
