# SPDX-License-Identifier: Apache-2.0
"""Forms that random graphs showed to come out wrong on OpenVINO, to end the process, or to be refused in vain."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

NAN = np.float32([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0])
FLOAT_MAX = float(np.finfo(np.float32).max)
GENERATOR = np.random.default_rng(7)


def parsed(graph: str, opset: int = 17) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


@pytest.mark.parametrize("operator", ["Expand", "Tile", "Unsqueeze"])
@pytest.mark.parametrize("shape", [(), (1, 2)])
def test_a_list_of_no_axes_changes_nothing(openvino: type[omb.Preset], operator: str, shape: tuple[int, ...]) -> None:
    if operator == "Tile" and shape:
        pytest.skip("Tile has a repeat for each axis")
    kind = f"float[{','.join(map(str, shape))}]" if shape else "float"
    model = parsed(f"({kind} x) => (float[] y) <int64[0] none = {{}}> {{ z = Neg (x) y = {operator} (z, none) }}")
    x = np.ones(shape, np.float32)
    (made,) = openvino.prepare(model).run(x)
    assert made.shape == shape
    np.testing.assert_array_equal(made, -x)


@pytest.mark.parametrize("operator", ["Expand", "Unsqueeze"])
@pytest.mark.parametrize("shape", ["", "[2]"])
def test_a_list_of_no_axes_alone_on_the_execution_provider(
    openvino_ep: type[omb.Preset], operator: str, shape: str
) -> None:
    """The provider takes a type that the CPU provider lacks, and nothing else: its process ended."""
    model = parsed(f"(float16{shape} x) => (float16{shape} y) <int64[0] none = {{}}> {{ y = {operator} (x, none) }}")
    x = np.full([2] if shape else [], 1.5, np.float16)
    np.testing.assert_array_equal(openvino_ep.prepare(model).run([x])[0], x)


def test_one_hot_of_no_indices(openvino: type[omb.Preset]) -> None:
    """All of it is known before anything runs; OpenVINO ended the process over it."""
    model = parsed("""() => (float[a, b, c] y) <float[0, 4] i = {}, float depth = {2}, float[2] values = {0, 1}> {
        y = OneHot (i, depth, values) }""")
    (made,) = openvino.prepare(model).run([])
    assert (made.shape, made.dtype) == ((0, 4, 2), np.float32)


def test_nothing_is_computed_of_an_empty_constant_that_went_through_a_loop(openvino: type[omb.Preset]) -> None:
    model = parsed(
        """() => (float[1, 0] y) <float[0] x = {}, int64 n = {1}, bool go = {1}, int64[2] shape = {1, 0}> {
        z = Asinh (x)
        w = Loop (n, go, z) <body = b (int64 i, bool c, float[0] v) => (bool d, float[0] u) {
            d = Identity (c) u = Identity (z) }>
        y = Expand (w, shape) }"""
    )
    assert openvino.prepare(model).run([])[0].shape == (1, 0)


@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 1), (1, 2), (1, 3)])
def test_indices_of_a_padded_pool_of_unknown_shape(
    openvino: type[omb.Preset], how: str, kernel: int, stride: int
) -> None:
    pytest.importorskip("onnxruntime")
    graph = """(float[n, 2, h, w] x) => (float[n, 2, a, b] y, int64[n, 2, a, b] i) {{
        y, i = MaxPool <auto_pad = "{how}", kernel_shape = [3, {kernel}], strides = [1, {stride}]> (x) }}"""
    model = parsed(graph.format(how=how, kernel=kernel, stride=stride))
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for sizes in ((5, 4), (6, 7)):
        x = GENERATOR.normal(size=(3, 2, *sizes)).astype(np.float32)
        for made, wanted in zip(prepared.run(x), right.run(x), strict=True):
            np.testing.assert_array_equal(made, wanted)
    with pytest.raises(omb.UnsupportedModelError, match="Indices"):
        openvino.prepare(parsed(graph.format(how=how, kernel=2, stride=2)))


@pytest.mark.parametrize("hint", ["LATENCY", "THROUGHPUT"])
def test_a_branch_of_unknown_shape_whose_run_needs_more_memory(openvino: type[omb.Preset], hint: str) -> None:
    model = parsed(
        """(int64[n, 2] a, int64[n, 2] b, bool c, int64[m, k] x) => (float[s, t] y, int64[m, k] z) {
        w = If (c) <then_branch = t () => (int64[p, q] v) { v = Identity (a) },
                    else_branch = e () => (int64[p, q] v) { v = Identity (b) }>
        y = Cast <to = 1> (w) z = Neg (x) }"""
    )
    for rows in (1, 2, 1):
        prepared = openvino.prepare(model, performance_hint=hint)
        a = np.arange(2 * rows).reshape(rows, 2) + 5
        for more in (1, 1, 9, 30, 2, 500):
            made = prepared.run([a, -a, np.array(True), np.ones((4, more), np.int64)])[0]
            np.testing.assert_array_equal(made, a.astype(np.float32))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("sizes", ["3, 1, 8", "n, 1, w"])
def test_indices_of_the_lowest_number(openvino: type[omb.Preset], kind: str, sizes: str) -> None:
    model = parsed(
        f"""({kind}[{sizes}] x) => ({kind}[a, b, c] y, int64[a, b, c] i) {{
        y, i = MaxPool <kernel_shape = [2], strides = [2]> (x) }}"""
    )
    x = GENERATOR.choice([np.iinfo(kind).min, 5], (3, 1, 8), p=[0.8, 0.2]).astype(kind)
    largest, places = openvino.prepare(model).run(x)
    pairs = x.reshape(3, 1, 4, 2)
    np.testing.assert_array_equal(largest, pairs.max(axis=-1))
    np.testing.assert_array_equal(places, np.arange(0, 24, 2).reshape(3, 1, 4) + pairs.argmax(axis=-1))


def test_integers_beside_a_scalar_beyond_int32(openvino: type[omb.Preset]) -> None:
    model = parsed("(int64[2] x) => (bool[2] y) <int64 c = {-9007199254740993}> { y = LessOrEqual (x, c) }")
    np.testing.assert_array_equal(openvino.prepare(model).run(np.array([-5, 2**31 - 1]))[0], [False, False])


def test_a_loop_of_no_steps_before_opset_9(openvino: type[omb.Preset]) -> None:
    graph = """(float[2] x) => (float[2] y, float[n, 2] rows) <int64 n = {0}, bool go = {1}> {
        y, rows = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] r) {
            d = Identity (c) w = Exp (v) r = Neg (v) }> }"""
    x = np.float32([1, 2])
    y, rows = openvino.prepare(parsed(graph, opset=7)).run(x)
    np.testing.assert_array_equal(y, x)
    assert rows.shape == (0, 2)


@pytest.mark.parametrize(
    ("node", "right"),
    [
        ("y = Celu (x)", [np.nan, np.inf, -1, 0, 1, np.expm1(-1)]),
        ("y = Celu <alpha = 0.5> (x)", [np.nan, np.inf, -0.5, 0, 1, 0.5 * np.expm1(-2)]),
        ("m = Mul (x, largest) y = Celu <alpha = 0.5> (m)", [np.nan, np.inf, -0.5, 0, 3e38, -0.5]),
        ("y = Shrink <lambd = 0.5, bias = 0.25> (x)", [0, np.inf, -np.inf, 0, 0.75, -0.75]),
        ("y = Mod <fmod = 1> (c, x)", [np.nan, 0.5, 0.5, np.nan, 0.5, 0.5]),
        ("y = Max (x, c)", [np.nan, np.inf, 0.5, 0.5, 1, 0.5]),
        ("y = Min (x, c)", [np.nan, 0.5, -np.inf, 0, 0.5, -1]),
    ],
)
@pytest.mark.parametrize("size", ["6", "n"])
def test_special_values_of_rare_operators(openvino: type[omb.Preset], node: str, right: list[float], size: str) -> None:
    model = parsed(f"(float[{size}] x) => (float[{size}] y) <float c = {{0.5}}, float largest = {{3e38}}> {{ {node} }}")
    np.testing.assert_allclose(openvino.prepare(model).run(NAN)[0], np.float32(right), rtol=1e-6)


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("order", ["x, c", "c, x"])
@pytest.mark.parametrize("size", ["3", "n"])
def test_a_nan_among_constants(openvino: type[omb.Preset], operator: str, order: str, size: str) -> None:
    model = parsed(
        f"(float[{size}] x) => (float[{size}] y) <float[3] c = {{0.5, nan, 2}}> {{ y = {operator} ({order}) }}"
    )
    tensor = model.graph.initializer[0] if model.graph.initializer else None
    assert tensor is not None
    made = openvino.prepare(model).run(np.float32([1, 1, 1]))[0]
    np.testing.assert_array_equal(made, {"Max": [1, np.nan, 2], "Min": [0.5, np.nan, 1]}[operator])


UNNEEDED = {
    "a node": "(float[3] x) => (float[3] y) { y = Neg (x) m = Mod (c, c) }",
    "a branch": """(float[3] x, bool b) => (float[3] y) {
        y = If (b) <then_branch = t () => (float[3] p) { m = Mod (c, c) p = Neg (x) },
                    else_branch = e () => (float[3] q) { q = Neg (x) }> }""",
}


@pytest.mark.parametrize("place", UNNEEDED)
def test_a_node_that_no_result_needs_does_not_refuse_the_model(openvino: type[omb.Preset], place: str) -> None:
    """Its constant is beyond what int32 holds."""
    model = parsed(UNNEEDED[place].replace(") {", ") <int64[2] c = {9007199254740991, 3}> {", 1))
    prepared = openvino.prepare(model)
    assert any(change.pass_name == "unneeded_nodes" for change in prepared.adaptations)
    feeds = [np.float32([1, -2, 3]), np.array(True)][: len(model.graph.input)]
    np.testing.assert_array_equal(prepared.run(feeds)[0], np.float32([-1, 2, -3]))


def test_a_node_of_strings_that_no_result_needs_takes_its_constant_along(openvino: type[omb.Preset]) -> None:
    """OpenVINO has no strings: a constant of them is refused, in a body too."""
    model = parsed(
        """(float[3] x, bool b) => (float[3] y) {
        y = If (b) <then_branch = t () => (float[3] p) <string[2] words = {"a b", "c"}> {
                        s, n = StringSplit (words) p = Neg (x) },
                    else_branch = e () => (float[3] q) { q = Abs (x) }> }""",
        opset=20,
    )
    prepared = openvino.prepare(model)
    assert "the constant 'words'" in {change.node for change in prepared.adaptations}
    np.testing.assert_array_equal(prepared.run([np.float32([1, -2, 3]), np.array(True)])[0], np.float32([-1, 2, -3]))


def test_a_refusal_names_a_node_that_a_result_needs(openvino: type[omb.Preset]) -> None:
    model = parsed(
        """(int64[2] x) => (int64[2] y) <int64[2] c = {9007199254740991, 3}, int64[2] d = {9007199254740991, 5}> {
        m = Mod (c, c) y = Max (x, d) }"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="compute Max correctly.*'d' is beyond what int32 holds"):
        openvino.prepare(model)


LARGE = 2**40


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_what_onnx_runtime_folds_keeps_its_bits(openvino_ep: type[omb.Preset]) -> None:
    """Where it becomes an output; what reads it on the provider would get it in int32.

    IsNaN runs on the CPU provider: of a model that the OpenVINO provider takes as a whole, it lacks an output that is known.
    """
    constant = f"<int64[2] c = {{-{LARGE}, 3}}>"
    model = parsed(
        f"""(float[3] x) => (float[3] y, bool[3] b, int64[2] z) {constant} {{
        v = Neg (x) b = IsNaN (v) y = Exp (v) a = Abs (c) z = Identity (a) }}"""
    )
    made = openvino_ep.prepare(model).run(np.float32([1, -2, 3]))
    np.testing.assert_array_equal(made["z"], [LARGE, 3])
    read = parsed(
        f"(int64[2] x) => (int64[2] y) {constant} {{ a = Abs (c) w = Neg (x) v = Max (w, a) y = Min (v, w) }}"
    )
    with pytest.raises(omb.UnsupportedModelError, match="beyond what int32 holds"):
        openvino_ep.prepare(read)


@pytest.mark.parametrize("node", ["CastLike (x, o)", "Cast <to = 6> (x)"])
def test_integers_that_are_passed_on_by_the_provider(openvino_ep: type[omb.Preset], node: str) -> None:
    prepared = openvino_ep.prepare(parsed(f"(int32[n] x, int32[m] o) => (int32[k] y) {{ y = {node} }}"))
    for count in (9, 1, 4, 2):
        x = np.arange(count, dtype=np.int32) - 3
        feeds = {"x": x, "o": x}
        np.testing.assert_array_equal(prepared.run({i.name: feeds[i.name] for i in prepared.get_inputs()})[0], x)


@pytest.mark.parametrize(
    ("data", "indices", "axis", "shape"),
    [
        ((2, 3), (0,), 0, (0, 3)),
        ((0, 3), (2,), 1, (0, 2)),
        ((2, 3, 4), (0, 5), -2, (2, 0, 5, 4)),
        ((1,), (0,), 0, (0,)),
    ],
)
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_gathering_nothing(
    openvino: type[omb.Preset],
    data: tuple[int, ...],
    indices: tuple[int, ...],
    axis: int,
    shape: tuple[int, ...],
    kind: str,
) -> None:
    """It ended the process."""
    given = f"{kind}[{','.join(map(str, data))}] x, int64[{','.join(map(str, indices))}] i"
    made = f"{kind}[{','.join('abcd'[: len(shape)])}] y"
    prepared = openvino.prepare(parsed(f"({given}) => ({made}) {{ y = Gather <axis = {axis}> (x, i) }}"))
    x = np.ones(data, {"float": np.float32, "int64": np.int64}[kind])
    (y,) = prepared.run([x, np.zeros(indices, np.int64)])
    assert (y.shape, y.dtype) == (shape, x.dtype)


def test_the_steps_of_a_scan_over_nothing(openvino: type[omb.Preset]) -> None:
    """It ended the process."""
    prepared = openvino.prepare(
        parsed(
            """(float[n, 3] x) => (float[a, b] v, float[c, d] y) <float[3, 0] w = {}> {
            v = MatMul (x, w)
            y = Scan <num_scan_inputs = 1, body = s (float[0] p) => (float[0] q) { q = Identity (p) }> (v) }"""
        )
    )
    for rows in (2, 5, 2):
        assert [made.shape for made in prepared.run(np.ones((rows, 3), np.float32))] == [(rows, 0)] * 2


@pytest.mark.parametrize("kind", ["float16", "float", "double"])
@pytest.mark.parametrize(("limits", "right"), [("max = 2.5", [1, 2, 2.5, 2.5]), ("min = 2.5", [2.5, 2.5, 3, 4])])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning")
def test_a_clip_with_attributes_keeps_its_type(
    openvino: type[omb.Preset], kind: str, limits: str, right: list[float]
) -> None:
    """It stands beside a node that needs a newer opset."""
    model = parsed(
        f"""({kind}[4] x, {kind}[4] z) => ({kind}[4] y, {kind}[4] w) {{
        w = HardSigmoid <alpha = 1.0, beta = 0.0> (z) y = Clip <{limits}> (x) }}""",
        opset=8,
    )
    dtype = {"float16": np.float16, "float": np.float32, "double": np.float64}[kind]
    x = np.array([1, 2, 3, 4], dtype)
    made = openvino.prepare(model).run([x, x])[0]
    np.testing.assert_array_equal(made, np.array(right, dtype), strict=True)


@pytest.mark.parametrize(
    ("kind", "largest", "right"),
    [("float16", np.inf, np.inf), ("float16", 65504, 65504), ("float", 1e38, 1e38), ("double", 1e300, FLOAT_MAX)],
)
def test_a_clip_that_names_no_upper_limit_has_that_of_float32(
    ort_cpu: type[omb.Preset], kind: str, largest: float, right: float
) -> None:
    """Since opset 11 it is that of the tensor's own type. It stands beside a node that needs a newer opset."""
    model = parsed(
        f"""({kind}[3] x, double[4] z) => ({kind}[3] y, double[4] w) {{
        w = HardSigmoid <alpha = 1.0, beta = 0.0> (z) y = Clip <min = -1.5> (x) }}""",
        opset=8,
    )
    dtype = {"float16": np.float16, "float": np.float32, "double": np.float64}[kind]
    made = ort_cpu.prepare(model).run([np.array([-9, 2, largest], dtype), np.zeros(4)])[0]
    np.testing.assert_array_equal(made, np.array([-1.5, 2, right], dtype), strict=True)


@pytest.mark.parametrize("opset", [9, 10, 13, 14, 21])
@pytest.mark.parametrize("width", ["3", "k"])
def test_the_rows_of_a_loop_that_makes_no_step(openvino: type[omb.Preset], opset: int, width: str) -> None:
    model = parsed(
        f"""(int64 n, float[2, {width}] x) => (float[2, {width}] y, float[a, b, c] rows) <bool go = {{1}}> {{
        y, rows = Loop (n, go, x) <body = s (int64 i, bool c0, float[2, {width}] v)
            => (bool d, float[2, {width}] w, float[2, {width}] r) {{ d = Identity (c0) w = Neg (v) r = Exp (v) }}> }}""",
        opset=opset,
    )
    prepared = openvino.prepare(model)
    for steps in (0, 3, 0, 2, 0):
        x = GENERATOR.normal(size=(2, 3)).astype(np.float32)
        y, rows = prepared.run([np.array(steps), x])
        np.testing.assert_array_equal(y, x if steps % 2 == 0 else -x)
        if steps:
            np.testing.assert_allclose(rows[0], np.exp(x), rtol=1e-6)
        assert len(rows) == steps
        assert steps or opset == 9 or rows.shape[2] == (3 if width == "3" else 0) or rows.shape[1:] == (0, 0)


@pytest.mark.parametrize("opset", [7, 8, 9, 13])
def test_a_state_that_the_body_does_not_read(openvino: type[omb.Preset], opset: int) -> None:
    model = parsed(
        """(int64 n, float[2] x, float[2] z) => (float[2] y) <bool go = {1}> {
        y = Loop (n, go, x) <body = s (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            d = Identity (c) w = Neg (z) }> }""",
        opset=opset,
    )
    prepared, x = openvino.prepare(model), np.float32([1, 2])
    for steps in (0, 2, 0, 1):
        np.testing.assert_array_equal(prepared.run([np.array(steps), x, 3 * x])[0], -3 * x if steps else x)


@pytest.mark.parametrize("node", ["Exp (v)", "Relu (v)", "Max (v, x)", "Clip <max = 9.0> (v)"])
def test_what_a_loop_computes_in_an_old_opset_keeps_its_nan(openvino: type[omb.Preset], node: str) -> None:
    """The rule that writes the loop anew writes its body anew, too."""
    model = parsed(
        f"""(int64 n, float[2] x) => (float[2] y, float[a, 2] rows) <bool go = {{1}}> {{
        y, rows = Loop (n, go, x) <body = s (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] r) {{
            d = Identity (c) w = {node} r = Neg (v) }}> }}""",
        opset=9,
    )
    y, rows = openvino.prepare(model).run([np.array(1), np.float32([np.nan, 0.0])])
    np.testing.assert_array_equal(y, [np.nan, 1 if "Exp" in node else 0])
    np.testing.assert_array_equal(rows, [[np.nan, 0.0]])


def test_slopes_of_a_vector_of_unknown_rank(preset: type[omb.Preset]) -> None:
    """ONNX's inference tells no rank of what a window is."""
    model = parsed(
        """(int32 n, float[6] s) => (float[a] y) <float half = {0.5}> {
        w = BlackmanWindow (n) h = Sub (w, half) y = PRelu (h, s) }"""
    )
    slopes = np.float32([-2, -1, 0, 1, 2, 3])
    window = 0.42 - 0.5 * np.cos(np.arange(6) * np.pi / 3) + 0.08 * np.cos(np.arange(6) * 2 * np.pi / 3) - 0.5
    prepared = preset.prepare(model)
    for _ in range(2):
        np.testing.assert_allclose(
            prepared.run([np.int32(6), slopes])[0], np.where(window < 0, window * slopes, window), atol=1e-6
        )
