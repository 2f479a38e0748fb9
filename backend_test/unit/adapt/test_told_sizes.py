# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model's inputs and nodes tell: never others than onnx infers, and no inference where they are enough."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto
from onnx.backend.test.loader import load_model_tests

import onnx_multi_backend as omb
from backend_test.search.graphs import Made, Plan, random_chain, random_graph, random_pattern
from backend_test.unit.counting import counted
from onnx_multi_backend.adapt.inferring import inference
from onnx_multi_backend.adapt.single_node import types_shared
from onnx_multi_backend.adapt.sizes.size import OPEN, Sizes
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.foldable import foldable
from onnx_multi_backend.models.contents import Contents

NODES = [test.model for test in load_model_tests(kind="node")]
GRAPHS: dict[str, Callable[[random.Random], Made]] = {
    "graph": lambda rng: random_graph(rng, Plan()),
    "chain": random_chain,
    "pattern": random_pattern,
}


def _contradictions(model: ModelProto) -> Iterator[tuple[str, Sizes, list[int | None]]]:
    """The values of which other sizes are told than onnx infers, which believes what outputs declare."""
    with types_shared():
        contents = Contents(model)
        walked, told = walked_of(contents), sizes_of(contents)
        declared = {value.name for graph in walked.graphs for value in graph.output}
        for name, sizes in told.items():
            kind = walked.types.get(name)
            if name in declared or kind is None or not kind.HasField("shape"):
                continue
            inferred = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
            pairs = list(zip(sizes, inferred, strict=False))
            wrong = any(size is not None and other is not None and size != other for size, other in pairs)
            if wrong or len(sizes) != len(inferred):
                yield name, sizes, inferred


def test_of_onnx_cases() -> None:
    told = 0
    for model in NODES:
        assert not list(_contradictions(model)), model.graph.name
        told += len(sizes_of(Contents(model)))
    assert told > len(NODES)


@pytest.mark.parametrize("kind", GRAPHS)
def test_of_random_graphs(kind: str) -> None:
    told = 0
    for i in range(150):
        model = GRAPHS[kind](random.Random(f"sizes:{i}")).model
        assert not list(_contradictions(model)), (kind, i)
        told += any(OPEN not in sizes and None not in sizes for sizes in sizes_of(Contents(model)).values())
    assert told > 15


def _model(text: str, inputs: str = "float[N, 3, 8, 8] x") -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (float y) {text}')


@pytest.mark.parametrize(
    ("nodes", "sizes"),
    [
        ("v = Relu (x)", (OPEN, 3, 8, 8)),
        ("v = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w)", (OPEN, 5, 4, 4)),
        ("v = MaxPool <kernel_shape = [2, 2], ceil_mode = 1> (x)", (OPEN, 3, None, None)),
        ("v = Transpose <perm = [1, 0, 3, 2]> (x)", (3, OPEN, 8, 8)),
        ("v = Flatten (x)", (OPEN, 192)),
        ("s = Shape (x) n = Gather (s, zero) c = Concat <axis = 0> (n, rest) v = Reshape (x, c)", (OPEN, None)),
        ("v = Reshape (x, joined)", (OPEN, None)),
        ("s = Shape <start = 1> (x) m = Mul (s, two) v = Expand (one, m)", (6, 16, 16)),
        ("s = Shape <end = 1> (x) n = Squeeze (s) r = Range (number, n, step) v = Unsqueeze (r, zero)", (1, OPEN)),
        ("v = Slice (x, two, rest, one)", (OPEN, 0, 8, 8)),
        ("v = Concat <axis = 0> (x, x)", (OPEN, 3, 8, 8)),
        ("v = Concat <axis = 1> (x, x)", (OPEN, 6, 8, 8)),
        ("v = ReduceMean <keepdims = 0> (x, two)", (OPEN, 3, 8)),
        ('v = Einsum <equation = "nchw, oc -> no"> (x, m)', (OPEN, 5)),
        ("v = MatMul (x, square)", (OPEN, 3, 8, 2)),
        ("f = Cast <to = 1> (two) h = Div (f, f) i = Cast <to = 7> (h) v = Expand (x, i)", (OPEN, 3, 8, 8)),
        ("v = ArgMax <axis = -1, keepdims = 0> (x)", (OPEN, 3, 8)),
        ("i = Shape (x) v = GatherElements (joined, i)", (4,)),
        ("i = Unsqueeze (joined, zero) v = GatherND (x, i)", (1, 8, 8)),
        ("v, i = TopK (x, two)", (None, None, None, None)),
    ],
)
def test_of_nodes(nodes: str, sizes: Sizes) -> None:
    weights = {name: ", ".join(["1"] * count) for name, count in (("w", 135), ("m", 15), ("square", 16))}
    constants = f"""<float[5, 3, 3, 3] w = {{{weights["w"]}}}, float[5, 3] m = {{{weights["m"]}}}, float[8, 2] square = {{{weights["square"]}}},
    int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] rest = {{-1}}, int64[2] joined = {{0, -1}}, int64 number = {{0}},
    int64 step = {{1}}>"""
    found = sizes_of(Contents(_model(f"{constants} {{ {nodes} y = Identity (v) }}")))["v"]
    assert found == sizes


def test_a_range_of_open_length_is_no_constant_and_what_is_expanded_is() -> None:
    text = """<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, float[2] c = {1, 2}> {
        s = Shape (x) n = Gather (s, zero) r = Range (zero, n, one) m = LessOrEqual (r, r) l = Gather (s, first) k = Concat <axis = 0> (l, l)
        e = Expand (zero, k) f = Range (zero, one, one) q = Shape (r) y = Identity (x) }"""
    contents = Contents(_model(text))
    fixed = walked_of(contents).fixed
    assert fixed.keys() >= {"r", "m", "e", "f", "q"}
    assert fixed.keys() - foldable(contents, stays_open=True).keys() == {"r", "m"}


def _attention(mask: str) -> ModelProto:
    """As PyTorch's older exporter writes it: a mask from the length, heads, a product that a mask guards against NaN."""
    rng = np.random.default_rng(0)
    weights = ", ".join(f"{number:.3f}" for number in rng.normal(size=64))
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[batch, length, 8] x) => (float[batch, length, 8] y)
        <float[8, 8] w = {{{weights}}}, int64[4] heads = {{0, 0, 2, 4}}, int64[3] whole = {{0, 0, 8}}, int64 zero = {{0}}, int64 one = {{1}}, int64[1] first = {{0}},
        int64[1] second = {{1}}, float least = {{-10000}}, float none = {{0}}> {{
        s = Shape (x) n = Gather (s, one) r = Range (zero, n, one) a = Unsqueeze (r, first) b = Unsqueeze (r, second)
        c = {mask} (a, b) m = Where (c, none, least) q = MatMul (x, w) qh = Reshape (q, heads) qt = Transpose <perm = [0, 2, 1, 3]> (qh)
        kt = Transpose <perm = [0, 2, 3, 1]> (qh) p = MatMul (qt, kt) pm = Add (p, m) soft = Softmax (pm) nan = IsNaN (soft)
        kept = Where (nan, none, soft) o = MatMul (kept, qt) ot = Transpose <perm = [0, 2, 1, 3]> (o) j = Reshape (ot, whole) y = MatMul (j, w) }}"""
    )


def test_an_exported_attention_costs_no_inference(
    openvino: type[omb.Preset], ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _attention("LessOrEqual")
    calls = counted(monkeypatch, inference, "_asked")
    rep = openvino.prepare(model)
    assert calls == []
    assert not rep.adaptations
    right = ort_cpu.prepare(model)
    for sizes in ((2, 3, 8), (1, 2, 8), (3, 5, 8)):
        x = np.random.default_rng(1).normal(size=sizes).astype(np.float32)
        np.testing.assert_allclose(rep.run(x)[0], right.run(x)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["Add", "Mul"])
def test_a_constant_expanded_to_open_sizes_counts(openvino: type[omb.Preset], operator: str) -> None:
    """OpenVINO leaves the Expand out, and a product's kernel then leaves out the constant, where it has two columns."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N, K] x, float[K, M] w) => (float[A, B] y)
        <float[2] c = {{3, 5}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> {{
        s = Shape (x) n = Gather (s, zero) k = Concat <axis = 0> (n, two) e = Expand (c, k) p = MatMul (x, w) y = {operator} (p, e) }}"""
    )
    rep, computed = openvino.prepare(model), np.add if operator == "Add" else np.multiply
    for rows in (1, 2, 3):
        x, w = np.float32(np.arange(rows * 2)).reshape(rows, 2), np.float32([[1, 2], [3, 4]])
        np.testing.assert_allclose(rep.run([x, w])[0], computed(x @ w, np.float32([3, 5])), rtol=1e-6)


#: Sizes computed in ways of which one reads past the last number, wraps, or counts backwards; each makes y of the shape that it computes.
ODD = {
    "steps without axes": "s = Shape (x) t = Slice (s, zero, four, none, two) y = ConstantOfShape (t)",
    "from the end backwards": "v = Slice (x, rest, most, zero, rest) y = Identity (v)",
    "backwards from the first": "v = Slice (x, zero, int, zero, rest) y = Identity (v)",
    "a number that wraps": "t = Cast <to = 6> (most) l = Cast <to = 7> (t) v = Slice (x, zero, l, zero) y = Identity (v)",
    "a sum that wraps": "l = Add (most, most) v = Slice (x, zero, l, zero) y = Identity (v)",
    "a difference below 0": "s = Shape <end = 1> (x) d = Sub (s, four) c = Equal (d, rest) t = Where (c, two, four) y = ConstantOfShape (t)",
    "axes that were cast": "a = Cast <to = 7> (fraction) y = ReduceSum <keepdims = 0> (x, a)",
    "a list whose axes were lost": "r = Reshape (sizes, k) l = Gather (r, number) y = ConstantOfShape (l)",
    "a default behind an Identity": "a = Identity (k) y = ReduceSum <keepdims = 0> (x, a)",
}


@pytest.mark.parametrize("form", ODD)
def test_no_size_is_told_that_is_another_one(form: str, ort_cpu: type[omb.Preset]) -> None:
    inputs = {"x": np.zeros((3, 3, 8, 8), np.float32)}
    given = "float[N, 3, 8, 8] x"
    if " k)" in ODD[form] or "(k)" in ODD[form]:
        inputs["k"], given = np.array([2, 2] if "lost" in form else [0, 2], np.int64), f"{given}, int64[K] k"
    text = f"""<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] rest = {{-1}}, int64[1] int = {{{2**31 - 1}}},
    int64[1] most = {{{2**63 - 1}}}, float[1] fraction = {{1.7}}, int64[4] sizes = {{2, 3, 4, 5}}, int64 number = {{0}}{", int64[1] k = {1}" if "default" in form else ""}>
    {{ {ODD[form].replace("none", "")} }}"""
    model = _model(text, given)
    told = sizes_of(Contents(model)).get("y", ())
    real = ort_cpu.prepare(model, adapt=False, session_options={"graph_optimization_level": "ORT_DISABLE_ALL"}).run(
        inputs
    )[0]
    assert "y" not in sizes_of(Contents(model)) or len(told) == real.ndim
    assert all(size == known for size, known in zip(told, real.shape, strict=False) if isinstance(size, int))


REFUSED = {
    "a pool of one axis": ("v = MaxPool <kernel_shape = [2]> (x)", "float[4] x"),
    "a range beyond int64": ("a = Cast <to = 7> (x) r = Range (low, most, step) v = Add (r, a)", "float x"),
    "sizes whose product is beyond int64": (
        "f = Flatten <axis = 0> (x) v = Slice (f, zero, rest, one)",
        f"float[{2**40}, {2**40}] x",
    ),
    "a list of 2**62 sizes": ("v = Reshape (x, l)", f"float[4] x, int64[{2**62}] l"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_absurd_sizes_are_no_error_of_ours(form: str, openvino: type[omb.Preset]) -> None:
    nodes, inputs = REFUSED[form]
    text = f"""<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{-1}}, int64 low = {{-10}}, int64 most = {{{2**63 - 1}}}, int64 step = {{1}}>
    {{ {nodes} y = Identity (v) s = ReduceSum <keepdims = 0> (i) }}"""
    model = _model(text, f"{inputs}, int64[Q, 4] i")
    sizes_of(Contents(model))
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(model)


def test_names_of_sibling_branches_are_not_taken_for_each_other() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[3] f, bool c) => (float[A, B] y) <int64[2] k = {2, 3}> {
        y = If (c) <then_branch = a () => (float one) { t = Identity (k) one = Reshape (x, t) },
                    else_branch = b () => (float other) { t = Cast <to = 7> (f) other = Reshape (x, t) }> }"""
    )
    assert sizes_of(Contents(model))["other"] == (None, None, None)


def test_a_sum_of_declared_sizes_is_bounded(openvino: type[omb.Preset]) -> None:
    """Of an input of open sizes, what is declared between the nodes tells how many elements are summed."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (int8[N] x) => (int64 y) <int64[67108864] e> { e = Cast <to = 7> (x) y = ReduceSum <keepdims = 0> (e) }"""
    )
    rep = openvino.prepare(model)
    with pytest.raises(omb.OnnxMultiBackendError, match="correct results only"):
        rep.run(np.full(4, 100, np.int8))
