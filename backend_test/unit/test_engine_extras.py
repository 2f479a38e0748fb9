# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX does not know and engines add, and what ONNX Runtime's own tools write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.float32([[[1, -2, 3, 4], [0.5, 0.1, -3, 2]]])
WEIGHT = np.float32([1, 2, 0.5, 1])
MS = "com.microsoft"


def normalized(x: np.ndarray, *, centred: bool) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True) if centred else x
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * WEIGHT)


def extra(
    op_type: str, opset: int, inputs: list[str], domain: str = "", imported: bool = True, **attributes: Any
) -> ModelProto:
    return models.model(
        [models.node(op_type, inputs, ["n"], domain=domain, **attributes), models.node("Neg", ["n"], ["y"])],
        [models.tensor("x", [None, None, 4])],
        [models.tensor("y", [None, None, 4])],
        initializers={"w": WEIGHT, "b": np.zeros(4, np.float32)},
        opsets={"": opset, MS: 1} if domain and imported else {"": opset},
        ir_version=8,
    )


EXTRAS = {
    "SimplifiedLayerNormalization": (extra("SimplifiedLayerNormalization", 14, ["x", "w"], axis=-1), False, X),
    "LayerNormalization before opset 17": (extra("LayerNormalization", 13, ["x", "w", "b"], axis=-1), True, X),
    "SkipSimplifiedLayerNormalization": (
        extra("SkipSimplifiedLayerNormalization", 14, ["x", "x", "w"], MS, epsilon=1e-5),
        False,
        2 * X,
    ),
    "a domain that is not imported": (  # the transformers optimizer writes it so
        extra("SkipSimplifiedLayerNormalization", 20, ["x", "x", "w"], MS, imported=False, epsilon=1e-5),
        False,
        2 * X,
    ),
}


@pytest.mark.parametrize("name", EXTRAS)
@pytest.mark.parametrize("adapt", [True, False])
def test_what_an_engine_adds_runs(engine: type[omb.Preset], name: str, adapt: bool) -> None:
    model, centred, x = EXTRAS[name]
    result = engine.prepare(model, adapt=adapt).run([X])[0]
    np.testing.assert_allclose(result, -normalized(x, centred=centred), rtol=1e-3, atol=1e-4)


def test_other_nodes_are_adapted_all_the_same(engine: type[omb.Preset]) -> None:
    lacking = {
        "OrtCpu": models.node("Sign", ["k"], ["z"]),  # wrong of NaN
        "Openvino": models.node("BitShift", ["k", "k"], ["z"], direction="LEFT"),
    }
    kind = {"OrtCpu": onnx.TensorProto.FLOAT16, "Openvino": onnx.TensorProto.UINT8}[engine.name]
    model = models.model(
        [models.node("SimplifiedLayerNormalization", ["x", "w"], ["y"], axis=-1), lacking[engine.name]],
        [models.tensor("x", [1, 2, 4]), models.tensor("k", [2], kind)],
        [models.tensor("y", [1, 2, 4]), models.tensor("z", [2], kind)],
        initializers={"w": WEIGHT},
        opsets={"": 18},
    )
    prepared = engine.prepare(model)
    assert prepared.adaptations
    k = np.array([1, 2], onnx.helper.tensor_dtype_to_np_dtype(kind))
    y, z = prepared.run([X, k])
    np.testing.assert_allclose(y, normalized(X, centred=False), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(z, np.sign(k) if engine.name == "OrtCpu" else k << k)


def attention() -> tuple[ModelProto, dict[str, np.ndarray]]:
    """What onnxruntime-genai's builder writes: grouped queries with a cache."""
    heads, shared, size, length = 4, 2, 8, 3
    given = {
        "q": ([1, length, heads * size], np.float32),
        "k": ([1, length, shared * size], np.float32),
        "v": ([1, length, shared * size], np.float32),
        "past_k": ([1, shared, 0, size], np.float32),
        "past_v": ([1, shared, 0, size], np.float32),
    }
    random = np.random.default_rng(5)
    feeds: dict[str, np.ndarray] = {name: random.standard_normal(shape).astype(t) for name, (shape, t) in given.items()}
    model = models.model(
        [
            models.node(
                "GroupQueryAttention",
                ["q", "k", "v", "past_k", "past_v", "seqlens", "total"],
                ["y", "present_k", "present_v"],
                domain=MS,
                num_heads=heads,
                kv_num_heads=shared,
            )
        ],
        [models.tensor(name, shape) for name, (shape, _) in given.items()],
        [
            models.tensor("y", [1, length, heads * size]),
            models.tensor("present_k", [1, shared, "t", size]),
            models.tensor("present_v", [1, shared, "t", size]),
        ],
        initializers={"seqlens": np.array([length - 1], np.int32), "total": np.array(length, np.int32)},
        opsets={"": 14, MS: 1},
        ir_version=8,
    )
    return model, feeds


def four_bits() -> tuple[ModelProto, dict[str, np.ndarray]]:
    """What ONNX Runtime's quantizer of weights writes."""
    random = np.random.default_rng(6)
    rows, columns, block = 32, 5, 32
    model = models.model(
        [models.node("MatMulNBits", ["x", "w", "s"], ["y"], domain=MS, K=rows, N=columns, bits=4, block_size=block)],
        [models.tensor("x", [2, rows])],
        [models.tensor("y", [2, columns])],
        initializers={
            "w": random.integers(0, 256, (columns, rows // block, block // 2), np.uint8),
            "s": random.random((columns * rows // block,), np.float32),
        },
        opsets={"": 14, MS: 1},
        ir_version=8,
    )
    return model, {"x": random.standard_normal((2, rows)).astype(np.float32)}


@pytest.mark.parametrize("made", [attention, four_bits], ids=["GroupQueryAttention", "MatMulNBits"])
@pytest.mark.parametrize("adapt", [True, False])
def test_what_language_models_are_built_of_runs(made: Any, adapt: bool, ort_cpu: type[omb.Preset]) -> None:
    from onnxruntime import InferenceSession

    model, feeds = made()
    right = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for found, wanted in zip(ort_cpu.prepare(model, adapt=adapt).run(feeds), right, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", ["BASIC", "EXTENDED", "ALL"])
@pytest.mark.parametrize("ir_version", [3, 8])
def test_what_onnx_runtime_saves_runs_again(
    ort_cpu: type[omb.Preset], tmp_path: Path, level: str, ir_version: int
) -> None:
    import onnxruntime as ort

    weights = np.random.default_rng(1).normal(size=(8, 8, 3, 3)).astype(np.float32)
    model = models.model(
        [
            models.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            models.node("BatchNormalization", ["c", "s", "s", "s", "s"], ["b"]),
            models.node("Relu", ["b"], ["y"]),
        ],
        [
            models.tensor("x", [1, 8, 6, 6]),
            *([models.tensor("w", [8, 8, 3, 3]), models.tensor("s", [8])] if ir_version < 4 else []),
        ],
        [models.tensor("y", [1, 8, 6, 6])],
        initializers={"w": weights, "s": np.ones(8, np.float32)},
        opsets={"": 12},
        ir_version=ir_version,
    )
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    bare = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(2).normal(size=(1, 8, 6, 6)).astype(np.float32)
    (right,) = bare.run(None, {"x": x})
    for adapt in (True, False):
        prepared = ort_cpu.prepare(tmp_path / "optimized.onnx", adapt=adapt)
        np.testing.assert_allclose(prepared.run({"x": x})[0], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_model_in_onnx_runtimes_own_format_runs(engine: type[omb.Preset], tmp_path: Path, as_bytes: bool) -> None:
    ort = pytest.importorskip("onnxruntime")
    model = models.linear(8, 4)
    path = tmp_path / "model.ort"
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    bare = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).normal(size=(2, 8)).astype(np.float32)
    (right,) = bare.run(None, {bare.get_inputs()[0].name: x})
    prepared = engine.prepare(path.read_bytes() if as_bytes else path)
    np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-5, atol=1e-5)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(omb.InvalidModelError, match=r"ONNX Runtime's own format, and ONNX Runtime \S+: "):
        engine.prepare(path)


def _constant(name: str, value: float) -> onnx.NodeProto:
    return models.node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.float32([value, 2])))


def _with_constant_results(kind: str) -> onnx.ModelProto:
    """Models of which a graph returns constants, before and behind a computed value."""
    sum_ = models.node("Add", ["x", "first"], ["sum"])
    results = ("first", "sum", "last")
    inside = [_constant("first", 1), sum_, _constant("last", 3)]
    outputs = [models.tensor(f"y{i}") for i in range(3)]
    if kind == "main graph":
        return models.model(inside, [models.tensor("x", [2])], [models.tensor(n, [2]) for n in results])
    body = onnx.helper.make_graph(inside, "body", [], [models.tensor(n, [2]) for n in results])
    branch = models.node("If", ["c"], [v.name for v in outputs], then_branch=body, else_branch=body)
    if kind == "branch in a branch":
        outer = onnx.helper.make_graph([branch], "outer", [], outputs)
        outputs = [models.tensor(f"z{i}") for i in range(3)]
        branch = models.node("If", ["c"], [v.name for v in outputs], then_branch=outer, else_branch=outer)
    inputs = [models.tensor("x", [2]), models.tensor("c", [], onnx.TensorProto.BOOL)]
    return models.model([branch], inputs, outputs)


@pytest.mark.parametrize("kind", ["main graph", "branch", "branch in a branch"])
def test_a_model_in_onnx_runtimes_own_format_keeps_constant_outputs(
    engine: type[omb.Preset], tmp_path: Path, kind: str
) -> None:
    ort = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.ort"
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ORT")
    model = _with_constant_results(kind)
    bare = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {"x": np.float32([3, 4])} | ({} if kind == "main graph" else {"c": np.array(True)})
    right = [[1, 2], [4, 6], [3, 2]]
    assert [r.tolist() for r in bare.run(None, feeds)] == right
    outputs = engine.prepare(path).run(feeds)
    assert outputs._fields == tuple(v.name for v in model.graph.output)
    assert [r.tolist() for r in outputs] == right


def test_what_onnx_runtimes_own_format_is_where_nothing_reads_it(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(omb.UnsupportedModelError, match=r"own format \(\.ort\).*is not installed. Install"):
        openvino.prepare(b"\x14\0\0\0ORTM and so on")


def test_every_operator_that_is_unknown_is_named_not_only_the_first(engine: type[omb.Preset]) -> None:
    unknown = [f"Mystery{i}" for i in range(12)]
    nodes = [
        models.node(op, ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"], domain="my.domain") for i, op in enumerate(unknown)
    ]
    made = models.model(
        [*nodes, models.node("Relu", ["v11"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y")],
        opsets={"": models.OPSET, "my.domain": 1},
    )
    with pytest.raises(omb.UnsupportedModelError) as raised:
        engine.prepare(made)
    assert raised.value.operators == tuple(f"my.domain.{name}" for name in unknown)


def test_unknown_operators_of_several_domains_and_in_branches_are_named(engine: type[omb.Preset]) -> None:
    then = onnx.helper.make_graph(
        [models.node("C", ["b"], ["t"], domain="a.dom")], "then", [], [models.tensor("t", None)]
    )
    other = onnx.helper.make_graph([models.node("Identity", ["b"], ["e"])], "else", [], [models.tensor("e", None)])
    nodes = [
        models.node("A", ["x"], ["a"], domain="a.dom"),
        models.node("B", ["a"], ["b"], domain="b.dom"),
        models.node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = [models.tensor("x"), models.tensor("c", [], onnx.TensorProto.BOOL)]
    made = models.model(nodes, inputs, [models.tensor("y", None)], opsets={"": models.OPSET, "a.dom": 1, "b.dom": 1})
    with pytest.raises(omb.UnsupportedModelError) as raised:
        engine.prepare(made)
    assert raised.value.operators == ("a.dom.A", "b.dom.B", "a.dom.C")
