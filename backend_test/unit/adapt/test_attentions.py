# SPDX-License-Identifier: Apache-2.0
"""Attentions of fixed sizes that OpenVINO gives an axis too many, or ends the process over."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper
from onnx.numpy_helper import from_array

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

RNG = np.random.default_rng(11)
#: What makes an output of the result `b` of an attention.
BEHIND = {
    "the result": "y = Identity (b)",
    "an activation": "y = Relu (b)",
    "two activations": "t = Tanh (b) y = Sigmoid (t)",
    "a factor": "y = Mul (b, two)",
    "a sum with an input": "y = Add (b, x)",
    "a Flatten": "y = Flatten (b)",
    "another product": "y = MatMul (b, v)",
    "a sum with the queries": "y = Sub (a1, b)",
    "a sum with a constant for each row": "y = Add (rows, b)",
    "the products too": "y = Max (a, b)",
}
#: How attention is written.
WRITTEN = {
    "scaled": "a1 = Mul (x, v) a = MatMul (a1, w) d = Div (a, two) s = Softmax (d) b = MatMul (s, v)",
    "of a Gemm": "a = Gemm (x, w) s = Softmax (a) b = Gemm (s, v)",
    "of other weights": "a = MatMul (x, w) s = Softmax (a) t = Relu (s) b = MatMul (t, v)",
    "from the right": "a = MatMul (x, w) s = Softmax (a) b = MatMul (v, s)",
    "with an Exp": "a = MatMul (x, w) e = Exp (a) n = ReduceSum <axes = [1]> (e) s = Div (e, n) b = MatMul (s, v)",
}
FORMS = [
    *((WRITTEN["scaled"], behind, "") for behind in BEHIND.values()),
    *((written, "y = Relu (b)", "") for written in WRITTEN.values()),
    *((WRITTEN["scaled"], "y = Relu (b)", lead) for lead in ("1, ", "1, 1, ", "1, 3, ", "2, 1, ")),
]


def as_unoptimized(preset: type[omb.Preset], model: ModelProto, feeds: dict[str, np.ndarray], near: float) -> None:
    """Shape, type and numbers are those of ONNX Runtime without optimizations."""
    for made, wanted in zip(preset.prepare(model).run(feeds), unoptimized(model, **feeds), strict=True):
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(made.astype(float), wanted.astype(float), rtol=near, atol=near)


@pytest.mark.parametrize(("attention", "behind", "lead"), FORMS)
@pytest.mark.parametrize("size", [4, 6])
def test_an_attention_has_its_axes(preset: type[omb.Preset], attention: str, behind: str, lead: str, size: int) -> None:
    sizes = f"{lead}{size}, {size}"
    model = parsed(
        f"(float[{sizes}] x, float[{sizes}] w, float[{sizes}] v) => (float[{sizes}] y) <float two = {{2}}, float[{size}, 1] rows = {{{', '.join(map(str, range(size)))}}}> {{ {attention} {behind} }}",
        11,
    )
    feeds = {name: RNG.normal(size=[int(k) for k in sizes.split(",")]).astype(np.float32) for name in "xwv"}
    as_unoptimized(preset, model, feeds, 1e-4)


@pytest.mark.parametrize(
    "behind",
    [
        "y = Relu (b)",
        "y = Add (x, b)",
        "y = Max (b, x)",
        "q = Add (b, x) m = MatMul (q, w) y = Add (m, q)",
        "q = Add (b, x) z = Sigmoid (b) y = Mul (z, q)",
        "q = Add (b, x) m = MatMul (q, w) n = Add (m, q) y = MatMul (n, v)",
        "rows = Constant <value = float16[8, 1] {0, 13000, 15000, 15360, 16000, 17000, 18000, 19000}> () y = Add (rows, b)",
    ],
)
@pytest.mark.parametrize("lead", ["", "2, 3, "])
def test_of_float16_as_well(preset: type[omb.Preset], behind: str, lead: str) -> None:
    """A sum with another value that something else reads as well, the larger of it and itself included, ends the process."""
    sizes = f"{lead}8, 8"
    model = parsed(
        f"(float16[{sizes}] x, float16[{sizes}] w, float16[{sizes}] v) => (float16[{sizes}] y) {{ a = MatMul (x, w) s = Softmax (a) b = MatMul (s, v) {behind} }}",
        13,
    )
    feeds = {name: RNG.normal(size=[int(k) for k in sizes.split(",")]).astype(np.float16) for name in "xwv"}
    as_unoptimized(preset, model, feeds, 2e-2)


@pytest.mark.parametrize(("kind", "behind"), [("bool", "y = IsNaN (b)"), ("double", "y = Cast <to = 11> (b)")])
def test_outputs_of_other_types(preset: type[omb.Preset], kind: str, behind: str) -> None:
    model = parsed(
        f"(float[8, 8] x, float[8, 8] w, float[8, 8] v) => ({kind}[8, 8] y) {{ a = MatMul (x, w) s = Softmax (a) b = MatMul (s, v) {behind} }}",
        13,
    )
    feeds = {name: RNG.normal(size=(8, 8)).astype(np.float32) for name in "xwv"}
    as_unoptimized(preset, model, feeds, 1e-4)


def test_the_operator_itself(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float16[2, 3, 8, 8] x, float16[2, 3, 8, 8] w, float16[2, 3, 8, 8] v) => (float16[2, 3, 8, 8] y) {
        b = Attention (x, w, v) q = Add (b, x) m = MatMul (q, w) y = Add (m, q) }""",
        23,
    )
    feeds = {name: (RNG.normal(size=(2, 3, 8, 8)) / 2).astype(np.float16) for name in "xwv"}
    (made,) = preset.prepare(model).run(feeds)
    (wanted,) = omb.OrtCpuBackend.prepare(model).run(feeds)
    np.testing.assert_allclose(made.astype(float), wanted.astype(float), rtol=2e-2, atol=2e-2)


def test_of_fixed_sizes_beside_an_open_one(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float16[8, 8] x, float16[8, 8] w, float16[n, 8] v) => (float16[8, 8] y, float16[m, 8] z) {
        a = MatMul (x, w) s = Softmax (a) b = MatMul (s, w) q = Add (b, x) g = MatMul (q, w) y = Add (g, q) z = Relu (v) }""",
        13,
    )
    sizes = {"x": (8, 8), "w": (8, 8), "v": (3, 8)}
    feeds = {name: RNG.normal(size=size).astype(np.float16) for name, size in sizes.items()}
    as_unoptimized(preset, model, feeds, 2e-2)


#: Heads put before the queries, and a product behind them.
HEADS = """q1 = Reshape (x, heads) k1 = Reshape (k, heads) v1 = Reshape (v, heads) q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
    k2 = Transpose <perm = [0, 2, 3, 1]> (k1) v2 = Transpose <perm = [0, 2, 1, 3]> (v1) a = MatMul (q2, k2)"""
#: How an attention goes on behind these, up to its result.
OF_HEADS = {
    "plain": "s = Softmax (a) b = MatMul (s, v2)",
    "scaled, with a mask": "h = CastLike (half, a) d = Mul (a, h) m = Where (mask, d, h) s = Softmax (m) b = MatMul (s, v2)",
    "with an Exp": "e = Exp (a) n = ReduceSum (e, last) s = Div (e, n) b = MatMul (s, v2)",
    "with an Einsum": 'c = Einsum <equation = "bqhd,bkhd->bhqk"> (q1, k1) s = Softmax (c) b = MatMul (s, v2)',
    "heads put before in two steps": """t = Relu (q1) u = Transpose <perm = [0, 3, 1, 2]> (t) w = Transpose <perm = [0, 3, 2, 1]> (u) c = MatMul (w, k2)
        s = Softmax (c) b = MatMul (s, v2)""",
    "activated queries": "q3 = Relu (q2) c = MatMul (q3, k2) s = Softmax (c) b = MatMul (s, v2)",
    "queries in fewer axes between": "q3 = Reshape (q2, fewer) q4 = Reshape (q3, again) c = MatMul (q4, k2) s = Softmax (c) b = MatMul (s, v2)",
}
#: What reads the result.
READING_HEADS = {
    "the result": "y = Identity (b)",
    "heads behind the queries": "y = Transpose <perm = [0, 2, 1, 3]> (b)",
    "the same, activated before": "r = Relu (b) y = Transpose <perm = [0, 2, 1, 3]> (r)",
    "a sum of both": "t = Transpose <perm = [0, 2, 1, 3]> (b) r = Relu (b) y = Add (t, r)",
    "a Reshape": "y = Reshape (b, flat)",
    "an activation behind the heads": "t = Transpose <perm = [0, 2, 1, 3]> (b) y = Relu (t)",
    "one over a Reshape": "t = Transpose <perm = [0, 2, 1, 3]> (b) r = Reshape (t, flat) y = Sigmoid (r)",
    "a normalization behind the heads": "t = Transpose <perm = [0, 2, 1, 3]> (b) y = LayerNormalization (t, scale)",
    "a scaled residual": "t = Transpose <perm = [0, 2, 1, 3]> (b) m = Mul (t, two) y = Add (m, q1)",
}
HEADED = [(OF_HEADS["plain"], reading) for reading in READING_HEADS.values()]
HEADED += [(attention, READING_HEADS["the result"]) for attention in OF_HEADS.values()]


def _with_heads(kind: str, attention: str, reading: str, heads: int, queries: int, keys: int) -> ModelProto:
    names = ", ".join(f"{kind}[2, {n}, {heads * 4}] {name}" for name, n in (("x", queries), ("k", keys), ("v", keys)))
    model = parsed(
        f"""({names}) => ({kind} y) <int64[4] heads = {{0, 0, {heads}, 4}}, int64[3] fewer = {{-1, {queries}, 4}}, int64[1] flat = {{-1}},
        int64[4] again = {{2, {heads}, {queries}, 4}}, int64[1] last = {{-1}}, float half = {{0.5}}, float two = {{2}}, float[4] scale = {{1, 2, 3, 4}}, bool[{keys}] mask = {{1{", 1" * (keys - 1)}}}> {{
        {HEADS} {attention} {reading} }}""",
        17,
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize(("attention", "reading"), HEADED)
@pytest.mark.parametrize(("heads", "queries", "keys"), [(2, 2, 2), (3, 3, 2)])
def test_it_is_not_written_over_its_queries(
    preset: type[omb.Preset], attention: str, reading: str, heads: int, queries: int, keys: int
) -> None:
    """As many heads as queries gave the queries the shape of the result."""
    model = _with_heads("float", attention, reading, heads, queries, keys)
    shapes = {"x": queries, "k": keys, "v": keys}
    feeds = {name: RNG.normal(size=(2, n, heads * 4)).astype(np.float32) for name, n in shapes.items()}
    as_unoptimized(preset, model, feeds, 1e-4)


def test_the_operator_is_not_written_over_its_queries(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[2, 3, 3, 4] x, float[2, 3, 3, 4] k, float[2, 3, 3, 4] v) => (float[2, 3, 3, 4] y) {
        q1 = Relu (x) q2 = Transpose <perm = [0, 2, 1, 3]> (q1) y = Attention (q2, k, v) }""",
        23,
    )
    feeds = {name: RNG.normal(size=(2, 3, 3, 4)).astype(np.float32) for name in "xkv"}
    as_unoptimized(preset, model, feeds, 1e-4)


@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("heads", [2, 3])
def test_a_transformer_stays_as_it_is(preset: type[omb.Preset], kind: str, heads: int) -> None:
    """Heads are put back behind the queries, and only a projection reads the result, before anything is added to it."""
    block = """t = Transpose <perm = [0, 2, 1, 3]> (b) r = Reshape (t, rows) m = MatMul (r, weights)
        p = Add (m, x) e = Relu (p) y = Add (p, e)"""
    model = _with_heads(kind, OF_HEADS["plain"], block, heads, 3, 3)
    dtype = np.float16 if kind == "float16" else np.float32
    weights = (RNG.normal(size=(heads * 4, heads * 4)) / 2).astype(dtype)
    model.graph.initializer.extend((from_array(np.array([2, 3, heads * 4]), "rows"), from_array(weights, "weights")))
    feeds = {name: (RNG.normal(size=(2, 3, heads * 4)) / 2).astype(dtype) for name in "xkv"}
    as_unoptimized(preset, model, feeds, 2e-2 if kind == "float16" else 1e-4)
    names = {made.pass_name for made in preset.prepare(model).adaptations}
    assert names.isdisjoint({"half_attentions", "queries_kept"})


#: Constant keys or values, and what reads them.
CONSTANTS = {
    "values": ("v", "k = Reshape (x, as_keys)", "b = MatMul (s, v)"),
    "values that are computed": ("v", "k = Reshape (x, as_keys)", "w = Relu (v) b = MatMul (s, w)"),
    "values of an Einsum": ("v", "k = Reshape (x, as_keys)", 'b = Einsum <equation = "bhqk,bhkd->bhqd"> (s, v)'),
    "keys": ("k", "v = Reshape (x, as_values)", "b = MatMul (s, v)"),
    "both": ("kv", "", "b = MatMul (s, v)"),
}


@pytest.mark.parametrize("constants", CONSTANTS)
@pytest.mark.parametrize("batch", [(2, 3), (1, 3), (2, 1)])
@pytest.mark.parametrize("is_open", [False, True])
def test_constant_keys_and_values(
    preset: type[omb.Preset], constants: str, batch: tuple[int, int], is_open: bool
) -> None:
    """Several matrices of them were those of another batch or head."""
    names, made, product = CONSTANTS[constants]
    sizes = "n, m, 4, 8" if is_open else f"{batch[0]}, {batch[1]}, 4, 8"
    model = parsed(
        f"""(float[{sizes}] x) => (float[a, b, c, d] y) <int64[4] as_keys = {{0, 0, 8, 4}}, int64[4] as_values = {{0, 0, 4, 8}}> {{
        {made} a = MatMul (x, k) s = Softmax (a) {product} y = Identity (b) }}""",
        17,
    )
    shapes = {"k": (*batch, 8, 4), "v": (*batch, 4, 8)}
    tensors = {name: RNG.normal(size=shapes[name]).astype(np.float32) for name in names}
    model.graph.initializer.extend(from_array(tensor, name) for name, tensor in tensors.items())
    as_unoptimized(preset, model, {"x": RNG.normal(size=(*batch, 4, 8)).astype(np.float32)}, 1e-4)


def test_before_opset_8(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[2, 3, 3, 4] x, float[2, 3, 4, 3] k, float[2, 3, 3, 4] v) => (float[2, 3, 3, 4] y) {
        q1 = Relu (x) q2 = Transpose <perm = [0, 2, 1, 3]> (q1) a = MatMul (q2, k) s = Softmax <axis = 3> (a) y = MatMul (s, v) }""",
        7,
    )
    shapes = {"x": (2, 3, 3, 4), "k": (2, 3, 4, 3), "v": (2, 3, 3, 4)}
    feeds = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    as_unoptimized(preset, model, feeds, 1e-4)


@pytest.mark.parametrize("operator", ["Attention", "Einsum", "MatMul"])
def test_a_node_of_another_domain_without_inputs(openvino: type[omb.Preset], operator: str) -> None:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node(operator, [], ["q"], domain="cust"),
        helper.make_node("MatMul", ["q", "x"], ["a"]),
        helper.make_node("Softmax", ["a"], ["s"]),
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["s", "t"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [2, 3, 4])], [value("y", 1, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("cust", 1)]
    with pytest.raises(omb.UnsupportedModelError, match=operator):
        openvino.prepare(helper.make_model(graph, opset_imports=opsets, ir_version=8))


@pytest.mark.parametrize("maker", ["Mul (q, c)", "Relu (q)", "Identity (q)"])
@pytest.mark.parametrize("flat", [False, True])
def test_queries_that_another_node_makes(preset: type[omb.Preset], maker: str, *, flat: bool) -> None:
    """OpenVINO wrote the result over them, where there are as many heads as queries."""
    behind = (
        "r = Transpose <perm = [0, 2, 1, 3]> (o) y = Reshape (r, n)"
        if flat
        else "y = Transpose <perm = [0, 2, 1, 3]> (o)"
    )
    shape = "a, b, c" if flat else "a, b, c, d"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 4, 4, 4] q, float[2, 4, 4, 4] k, float[2, 4, 4, 4] v) => (float[{shape}] y)
        <float c = {{1.5}}, int64[3] n = {{2, 4, 16}}> {{ s = {maker} t = Transpose <perm = [0, 1, 3, 2]> (k) m = MatMul (s, t) p = Softmax <axis = -1> (m)
        o = MatMul (p, v) {behind} }}"""
    )
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 4, 4, 4)).astype(np.float32)
    queries = {"Mul": 1.5 * q, "Relu": np.maximum(q, 0), "Identity": q}[maker.split()[0]]
    shares = np.exp(queries @ k.transpose(0, 1, 3, 2))
    right = (
        ((shares / shares.sum(-1, keepdims=True)) @ v)
        .transpose(0, 2, 1, 3)
        .reshape((2, 4, 16) if flat else (2, 4, 4, 4))
    )
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([q, k, v])[0], right, rtol=1e-4, atol=1e-5)
