# SPDX-License-Identifier: Apache-2.0
"""The types that are inferred of ONNX Runtime's own operators are those that ONNX Runtime makes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.search.graphs.contrib import random_contrib
from onnx_multi_backend.adapt.inferring.contrib_types import OPERATORS
from onnx_multi_backend.adapt.inferring.inference import infer

_MS = "com.microsoft"
_RNG = np.random.default_rng(7)


def _floats(*sizes: int) -> np.ndarray:
    return _RNG.standard_normal(sizes).astype(np.float32)


def _bytes(*sizes: int) -> np.ndarray:
    return _RNG.integers(0, 255, sizes).astype(np.uint8)


_SCALE, _ZERO = np.float32(0.1), np.uint8(128)
_X = _floats(2, 3, 8)
_Q = _bytes(2, 3, 8)

#: Operator, its inputs (None where one is left out), and the number of results.
_FORMS: dict[str, tuple[Sequence[Any], int, dict[str, Any]]] = {
    "Attention": ((_X, _floats(8, 20), _floats(20)), 2, {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
    "BiasGelu": ((_X, _floats(8)), 1, {}),
    "DequantizeLinear": ((_Q, _SCALE, _ZERO), 1, {}),
    "DynamicQuantizeLSTM": (
        (
            *(_floats(3, 2, 4), _bytes(2, 4, 20).view(np.int8), _bytes(2, 5, 20).view(np.int8), _floats(2, 40)),
            *(None, None, None, None, _floats(2), np.zeros(2, np.int8), _floats(2), np.zeros(2, np.int8)),
        ),
        3,
        {"hidden_size": 5, "direction": "bidirectional"},
    ),
    "DynamicQuantizeMatMul": ((_X, _bytes(8, 5), _SCALE, _ZERO), 1, {}),
    "EmbedLayerNormalization": (
        (
            np.ones((2, 3), np.int32),
            None,
            _floats(4, 8),
            _floats(5, 8),
            None,
            _floats(8),
            _floats(8),
            np.ones((2, 3), np.int32),
        ),
        3,
        {},
    ),
    "FastGelu": ((_X, _floats(8)), 1, {}),
    "FusedConv": ((_floats(1, 2, 6, 6), _floats(3, 2, 3, 3)), 1, {"activation": "Relu"}),
    "FusedGemm": ((_floats(3, 4), _floats(4, 5)), 1, {"activation": "Relu"}),
    "FusedMatMul": ((_floats(3, 4), _floats(2, 5, 4)), 1, {"transB": 1}),
    "Gelu": ((_X,), 1, {}),
    "GroupQueryAttention": (
        (
            *(_floats(1, 3, 48), None, None, _floats(1, 1, 4, 8), _floats(1, 1, 4, 8)),
            *(np.array([[2]], np.int32), np.array(3, np.int32)),
        ),
        3,
        {"num_heads": 4, "kv_num_heads": 1},
    ),
    "MatMulIntegerToFloat": ((_Q, _bytes(8, 5), _SCALE, _SCALE, _ZERO, _ZERO), 1, {}),
    "MatMulNBits": (
        (_floats(2, 3, 32), _bytes(6, 1, 16), _floats(6)),
        1,
        {"K": 32, "N": 6, "bits": 4, "block_size": 32},
    ),
    "MultiHeadAttention": ((_X, _floats(2, 2, 5, 4), _floats(2, 2, 5, 4)), 3, {"num_heads": 2}),
    "Pad": ((_X, np.array([0, 1, 0, 0, 0, 2])), 1, {}),
    "QAttention": ((_Q, _bytes(8, 24), _floats(24), _SCALE, _SCALE, None, _ZERO, _ZERO), 1, {"num_heads": 2}),
    "QGemm": ((_bytes(3, 4), _SCALE, _ZERO, _bytes(4, 5), _SCALE, _ZERO, None, _SCALE, _ZERO), 1, {}),
    "QLinearAdd": ((_Q, _SCALE, _ZERO, _bytes(4, 1, 1, 8), _SCALE, _ZERO, _SCALE, _ZERO), 1, {}),
    "QLinearAveragePool": ((_bytes(1, 2, 6, 6), _SCALE, _ZERO, _SCALE, _ZERO), 1, {"kernel_shape": [2, 3]}),
    "QLinearGlobalAveragePool": ((_bytes(1, 2, 6, 6), _SCALE, _ZERO, _SCALE, _ZERO), 1, {}),
    "QLinearLeakyRelu": ((_Q, _SCALE, _ZERO, _SCALE, _ZERO), 1, {"alpha": 0.2}),
    "QLinearMul": ((_Q, _SCALE, _ZERO, _bytes(8), _SCALE, _ZERO, _SCALE, _ZERO), 1, {}),
    "QLinearSigmoid": ((_Q, _SCALE, _ZERO, _SCALE, _ZERO), 1, {}),
    "QLinearSoftmax": ((_Q, _SCALE, _ZERO, np.float32(1 / 256), np.uint8(0)), 1, {"axis": 2, "opset": 13}),
    "QuantizeLinear": ((_X, _SCALE, np.uint16(3)), 1, {}),
    "QuickGelu": ((_X,), 1, {}),
    "RotaryEmbedding": ((_floats(2, 3, 8), np.array([0]), _floats(5, 2), _floats(5, 2)), 1, {"num_heads": 2}),
    "SkipLayerNormalization": ((_X, _X, _floats(8)), 4, {}),
    "SkipSimplifiedLayerNormalization": ((_X, _X, _floats(8)), 4, {}),
    "TransposeMatMul": ((_floats(3, 4), _floats(2, 5, 4)), 1, {"transB": 1}),
}


def _single(operator: str, domain: str = _MS, opset: int = 21) -> tuple[ModelProto, dict[str, np.ndarray]]:
    if domain:
        inputs, results, attributes = _FORMS[operator]
    else:
        inputs, results, attributes = (_X, _floats(8)), 1, {"axis": -1}
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    feeds = {name: np.asarray(array) for name, array in zip(names, inputs, strict=True) if name}
    made = [f"y{i}" if operator[:4] != "Skip" or i in (0, 3) else "" for i in range(results)]
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in made if name]
    graph = helper.make_graph([node], "contrib", declared, outputs)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(_MS, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8), feeds


def _told(model: ModelProto) -> dict[str, TensorProto]:
    """Types that are inferred where none is declared."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.output:
        value.ClearField("type")
    typed = infer(copy).graph
    return {v.name: v.type.tensor_type for v in (*typed.value_info, *typed.output) if v.type.HasField("tensor_type")}


def _check(model: ModelProto, feeds: Mapping[str, np.ndarray], preset: type[omb.Preset]) -> int:
    """How many results have the rank and the sizes that are inferred: all that have any."""
    told = _told(model)
    results = preset.prepare(model, adapt=False).run(dict(feeds))
    seen = 0
    for value, array in zip(model.graph.output, results, strict=True):
        kind = told.get(value.name)
        if kind is None or not kind.HasField("shape"):
            continue
        seen += 1
        assert kind.elem_type == helper.np_dtype_to_tensor_dtype(array.dtype)
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        assert len(sizes) == array.ndim
        assert all(size in (None, real) for size, real in zip(sizes, array.shape, strict=True)), (sizes, array.shape)
    return seen


def test_each_operator_has_a_form() -> None:
    assert set(_FORMS) == set(OPERATORS[_MS])


@pytest.mark.parametrize("operator", _FORMS)
def test_one_operator(operator: str, ort_cpu: type[omb.Preset]) -> None:
    model, feeds = _single(operator)
    assert _check(model, feeds, ort_cpu) == len(model.graph.output)


@pytest.mark.parametrize(("operator", "opset"), [("LayerNormalization", 14), ("SimplifiedLayerNormalization", 21)])
def test_of_the_default_domain(operator: str, opset: int, ort_cpu: type[omb.Preset]) -> None:
    model, feeds = _single(operator, "", opset)
    assert _check(model, feeds, ort_cpu) == 1


def test_random_forms(ort_cpu: type[omb.Preset]) -> None:
    seen = 0
    for seed in range(150):
        model, runs = random_contrib(random.Random(seed))
        for feeds in runs:
            try:
                seen += _check(model, feeds, ort_cpu)
            except omb.RunError:
                break
    assert seen > 150


def test_what_follows_has_a_type_and_the_model_stays_as_it_is(ort_cpu: type[omb.Preset]) -> None:
    model, _ = _single("FusedMatMul")
    model.graph.node.append(helper.make_node("Transpose", ["y0"], ["z"]))
    branch = helper.make_graph(
        [helper.make_node("Gelu", ["z"], ["inner"], domain=_MS)], "b", [], [onnx.ValueInfoProto(name="inner")]
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    model.graph.node.append(helper.make_node("If", ["c"], ["w"], then_branch=branch, else_branch=branch))
    before = model.SerializeToString(deterministic=True)
    schemas = len(onnx.defs.get_all_schemas_with_history())
    typed = infer(model)
    assert len(onnx.defs.get_all_schemas_with_history()) == schemas  # ONNX's coverage report counts them
    assert model.SerializeToString(deterministic=True) == before
    told = {v.name: v.type.tensor_type for v in (*typed.graph.value_info, *typed.graph.output)}
    assert [len(told[name].shape.dim) for name in ("z", "w")] == [3, 3]
    assert [n.domain for n in typed.graph.node] == [_MS, "", ""]
    assert typed.graph.node[2].attribute[0].g.node[0].domain == _MS
    assert typed.opset_import == model.opset_import
    assert not onnx.defs.has("Gelu", 1, _MS)  # for whoever else uses onnx


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("MatMulNBits", {"N": "6"}),
        ("MatMulNBits", {"N": 6.5}),
        ("MatMulNBits", {"N": [6]}),
        ("Attention", {"qkv_hidden_sizes": 3}),
        ("Attention", {"qkv_hidden_sizes": ["a"]}),
        ("GroupQueryAttention", {"num_heads": "2", "kv_num_heads": 1}),
        ("GroupQueryAttention", {"num_heads": 2.5, "kv_num_heads": "s"}),
    ],
)
def test_attributes_of_another_type(operator: str, attributes: dict[str, Any], engine: type[omb.Preset]) -> None:
    model, _ = _single(operator)
    for value in model.graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attributes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])
    with pytest.raises(omb.UnsupportedModelError):
        engine.prepare(model)


def test_keys_of_an_unknown_type_are_keys() -> None:
    model, _ = _single("GroupQueryAttention")
    node = model.graph.node[0]
    node.input[1] = node.input[2] = "unknown"
    model.graph.node.insert(0, helper.make_node("Trilu", ["x0"], ["unknown"], domain=_MS))
    assert [dim.dim_value for dim in _told(model)["y0"].shape.dim] == [1, 3, 48]


def test_a_local_function_of_that_name_is_what_it_says() -> None:
    model, _ = _single("Gelu")
    body = [helper.make_node("Transpose", ["a"], ["b"], perm=[2, 1, 0])]
    function = helper.make_function(_MS, "Gelu", ["a"], ["b"], body, [helper.make_opsetid("", 21)])
    model.functions.append(function)
    assert [dim.dim_value for dim in _told(model)["y0"].shape.dim] == [8, 3, 2]


def test_threads_infer_at_once() -> None:
    models = [_single(operator)[0] for operator in ("Gelu", "FusedMatMul", "Attention", "SkipLayerNormalization")]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(_told, models * 20))
    assert all(len(found["y0"].shape.dim) == 3 for found in told)
    assert not any("onnx_multi_backend" in schema.domain for schema in onnx.defs.get_all_schemas())
