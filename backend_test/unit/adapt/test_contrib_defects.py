# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime's domain that OpenVINO computes wrongly in some forms are right, or refused, on every preset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.test_contrib_rules import contrib

GENERATOR = np.random.default_rng(0)
FULL = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def _normal(*shape: int) -> Any:
    return GENERATOR.normal(size=shape).astype(np.float32)


def _rotated(x: Any, positions: Any, cos: Any, sin: Any, turned: int, *, interleaved: bool) -> Any:
    """What the formula makes of x, of shape (batch, length, heads, elements)."""
    cos, sin = cos[positions][:, :, None], sin[positions][:, :, None]
    part, kept = x[..., :turned], x[..., turned:]
    half = turned // 2
    one, other = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    made = np.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1)
    if interleaved:
        made = np.stack([made[..., :half], made[..., half:]], axis=-1).reshape(part.shape)
    return np.concatenate([made, kept], axis=-1)


@FULL
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize("declared", [True, False])
def test_rotary_embedding(
    preset: type[omb.Preset], axes: int, turned: int, interleaved: int, *, first: bool, declared: bool
) -> None:
    cos, sin = _normal(16, (turned or 8) // 2), _normal(16, (turned or 8) // 2)
    batch, length = (2, 3) if declared else ("b", "l")
    given = [
        models.tensor("x", [batch, length, 16] if axes == 3 else [batch, 2, length, 8]),
        models.tensor("p", [1] if first else [batch, length], TensorProto.INT64),
    ]
    options = {"rotary_embedding_dim": turned, "num_heads": 2} if turned else {}
    model = contrib(
        "RotaryEmbedding",
        ["x", "p", "c", "s"],
        ["y"],
        given,
        {"c": cos, "s": sin},
        interleaved=interleaved,
        **options,
    )
    prepared = preset.prepare(model, fallback="full")
    for size in (3,) if declared else (3, 5, 0):
        x = _normal(2, size, 2, 8)
        positions = np.array([2]) if first else GENERATOR.integers(0, 16, (2, size))
        places = 2 + np.tile(np.arange(size), (2, 1)) if first else positions
        right = _rotated(x, places, cos, sin, turned or 8, interleaved=bool(interleaved))
        if axes == 3:
            fed, right = x.reshape(2, size, 16), right.reshape(2, size, 16)
        else:
            fed, right = x.transpose(0, 2, 1, 3), right.transpose(0, 2, 1, 3)
        np.testing.assert_allclose(prepared.run([fed, positions])[0], right, rtol=1e-5, atol=1e-5)


@FULL
@pytest.mark.parametrize("pads", [[1, 0, 0, 2], [[1, 0, 0, 2]]])
@pytest.mark.parametrize("rows", [2, "n"])
@pytest.mark.parametrize("constant", [True, False])
def test_pad(preset: type[omb.Preset], rows: int | str, pads: list[Any], *, constant: bool) -> None:
    """Without a constant value OpenVINO padded with 0, in some runs where sizes are open."""
    value = np.float32(1.5)
    given = [models.tensor("x", [rows, 3]), *([] if constant else [models.tensor("v", [])])]
    model = contrib(
        "Pad",
        ["x", "p", "v"],
        ["y"],
        given,
        {"p": np.array(pads), **({"v": value} if constant else {})},
        mode="constant",
    )
    prepared = preset.prepare(model, fallback="full")
    for count in (2,) if rows == 2 else (3, 2):
        x = _normal(count, 3)
        (made,) = prepared.run([x] if constant else [x, value])
        np.testing.assert_array_equal(made, np.pad(x, [(1, 0), (0, 2)], constant_values=1.5))


@FULL
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("zero", [True, False])
def test_dynamic_quantize_matmul(preset: type[omb.Preset], *, zero: bool, columns: bool, bias: bool) -> None:
    """OpenVINO did not quantize the first operand."""
    weights = {
        "w": GENERATOR.integers(0, 255, (8, 5)).astype(np.uint8),
        "s": GENERATOR.uniform(0.1, 0.3, 5 if columns else ()).astype(np.float32),
        **({"z": np.uint8(7)} if zero else {}),
        **({"b": _normal(5)} if bias else {}),
    }
    names = ["x", "w", "s", "z" if zero else "", "b" if bias else ""]
    model = contrib("DynamicQuantizeMatMul", names, ["y"], [models.tensor("x", ["n", 8])], weights)
    x = _normal(3, 8)
    scale = np.float32((x.max() - x.min()) / np.float32(255))
    shift = np.round(-x.min() / scale)
    meant = scale * (np.clip(np.round(x / scale) + shift, 0, 255) - shift)
    right = meant @ ((weights["w"].astype(np.float32) - weights.get("z", 0)) * weights["s"]) + weights.get("b", 0)
    (made,) = preset.prepare(model, fallback="full").run(x)
    np.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-3)


def test_an_attention_with_the_usual_scale_is_not_refused(openvino: type[omb.Preset]) -> None:
    weights = {"w": _normal(8, 24), "b": _normal(24)}
    given = [models.tensor("x", ["n", "m", 8])]
    model = contrib("Attention", ["x", "w", "b"], ["y"], given, weights, num_heads=2, scale=0.5)
    plain = contrib("Attention", ["x", "w", "b"], ["y"], given, weights, num_heads=2)
    x = _normal(2, 3, 8)
    np.testing.assert_array_equal(openvino.prepare(model).run(x)[0], openvino.prepare(plain).run(x)[0])


@FULL
@pytest.mark.parametrize("sizes", [[8, 8, 8], [8, 8, 12]])
def test_attention_with_a_scale(preset: type[omb.Preset], sizes: list[int]) -> None:
    """OpenVINO ignored it."""
    weights = {"w": _normal(8, sum(sizes)), "b": _normal(sum(sizes))}
    given = [models.tensor("x", ["n", "m", 8])]
    options = {} if sizes[2] == 8 else {"qkv_hidden_sizes": sizes}
    model = contrib("Attention", ["x", "w", "b"], ["y"], given, weights, num_heads=2, scale=0.3, **options)
    prepared = preset.prepare(model, fallback="full")
    for length in (3, 5):
        x = _normal(2, length, 8)
        parts = np.split(x @ weights["w"] + weights["b"], np.cumsum(sizes)[:2], axis=-1)
        q, k, v = (part.reshape(2, length, 2, -1).transpose(0, 2, 1, 3) for part in parts)
        scores = 0.3 * q @ k.transpose(0, 1, 3, 2)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        right = (shares / shares.sum(-1, keepdims=True)) @ v
        right = right.transpose(0, 2, 1, 3).reshape(2, length, sizes[2])
        np.testing.assert_allclose(prepared.run(x)[0], right, rtol=1e-4, atol=1e-5)


def test_an_attention_whose_mask_is_weak_is_refused(openvino: type[omb.Preset]) -> None:
    weights = {"w": _normal(8, 24), "b": _normal(24)}
    given = [models.tensor("x", ["n", "m", 8]), models.tensor("mask", ["n", "m"], TensorProto.INT32)]
    names = ["x", "w", "b", "mask"]
    openvino.prepare(contrib("Attention", names, ["y"], given, weights, num_heads=2))
    model = contrib("Attention", names, ["y"], given, weights, num_heads=2, mask_filter_value=-5.0)
    with pytest.raises(omb.UnsupportedModelError, match="mask_filter_value is ignored"):
        openvino.prepare(model)


@pytest.mark.parametrize("projected", [True, False])
def test_a_bias_beside_projected_keys_is_refused(openvino: type[omb.Preset], *, projected: bool) -> None:
    keys = [2, 2, 5, 4] if projected else [2, 5, 8]
    given = [models.tensor("q", [2, 3, 8]), *(models.tensor(name, keys) for name in "kv")]
    model = contrib("MultiHeadAttention", ["q", "k", "v", "b"], ["y"], given, {"b": _normal(24)}, num_heads=2)
    if not projected:
        openvino.prepare(model)
        return
    with pytest.raises(omb.UnsupportedModelError, match="projected already"):
        openvino.prepare(model)


def test_a_bias_beside_keys_whose_type_is_not_declared(preset: type[omb.Preset]) -> None:
    """Whether they are projected already is known of what makes them: a layer of ONNX Runtime's, of which onnx infers nothing."""
    given = [models.tensor("x", ["n", "m", 8])]
    weights = {"g": _normal(8), "w": _normal(8, 8), "b": _normal(24)}
    nodes = [
        helper.make_node("SkipLayerNormalization", ["x", "x", "g"], ["h"], domain="com.microsoft"),
        helper.make_node("MatMul", ["h", "w"], ["k"]),
        helper.make_node("MultiHeadAttention", ["h", "k", "k", "b"], ["y"], domain="com.microsoft", num_heads=2),
    ]
    outputs = [models.tensor("y", None)]
    model = models.model(nodes, given, outputs, initializers=weights, opsets={"": 17, "com.microsoft": 1})
    x = _normal(2, 3, 8)
    h = (2 * x - 2 * x.mean(-1, keepdims=True)) / np.sqrt(4 * x.var(-1, keepdims=True) + 1e-12) * weights["g"]
    parts = np.stack([h, h @ weights["w"], h @ weights["w"]]) + weights["b"].reshape(3, 1, 1, 8)
    q, k, v = parts.reshape(3, 2, 3, 2, 4).transpose(0, 1, 3, 2, 4)
    shares = np.exp(q @ k.transpose(0, 1, 3, 2) / 2)
    right = ((shares / shares.sum(-1, keepdims=True)) @ v).transpose(0, 2, 1, 3).reshape(2, 3, 8)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)[0], right, rtol=1e-3, atol=1e-4)


def test_an_attention_whose_result_has_no_declared_type_is_left_to_the_cpu(
    openvino_ep: type[omb.Preset], ort_cpu: type[omb.Preset]
) -> None:
    weights = {"w": _normal(8, 24), "b": _normal(24)}
    given = [models.tensor("x", ["n", "m", 8]), models.tensor("mask", ["n", "m"], TensorProto.INT32)]
    names = ["x", "w", "b", "mask"]
    model = contrib("Attention", names, ["y"], given, weights, num_heads=2, mask_filter_value=-5.0)
    model.graph.node.append(helper.make_node("Transpose", ["y"], ["z"]))
    model.graph.output[0].name = "z"
    feeds = [_normal(2, 3, 8), np.array([[1, 1, 0], [1, 0, 1]], np.int32)]
    with pytest.warns(omb.FallbackWarning):
        (made,) = openvino_ep.prepare(model).run(feeds)
    np.testing.assert_allclose(made, ort_cpu.prepare(model).run(feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", [3, 4])
def test_caches_of_a_rotary_embedding_that_a_run_tells(openvino: type[omb.Preset], axes: int) -> None:
    given = [
        models.tensor("x", ["b", "l", 16] if axes == 3 else ["b", 2, "l", 8]),
        models.tensor("p", [1], TensorProto.INT64),
        *(models.tensor(name, ["m", "h"]) for name in "cs"),
    ]
    model = contrib("RotaryEmbedding", list("xpcs"), ["y"], given, {}, **({"num_heads": 2} if axes == 3 else {}))
    x, cos, sin = _normal(2, 3, 2, 8), _normal(16, 4), _normal(16, 4)
    right = _rotated(x, np.tile(np.arange(3), (2, 1)) + 1, cos, sin, 8, interleaved=False)
    fed = x.reshape(2, 3, 16) if axes == 3 else x.transpose(0, 2, 1, 3)
    right = right.reshape(2, 3, 16) if axes == 3 else right.transpose(0, 2, 1, 3)
    np.testing.assert_allclose(openvino.prepare(model).run([fed, np.array([1]), cos, sin])[0], right, atol=1e-5)


def test_a_cache_that_is_declared_empty_is_refused(openvino: type[omb.Preset]) -> None:
    def cached(past: int | str) -> Any:
        names = ["q", "k", "v", "pk", "pv", "l", "t"]
        given = [
            models.tensor("q", [1, 3, 32]),
            *(models.tensor(name, [1, 3, 16]) for name in "kv"),
            *(models.tensor(name, [1, 2, past, 8]) for name in ("pk", "pv")),
        ]
        lengths = {"l": np.array([2], np.int32), "t": np.array(3, np.int32)}
        return contrib("GroupQueryAttention", names, ["y", "nk", "nv"], given, lengths, num_heads=4, kv_num_heads=2)

    with pytest.raises(omb.UnsupportedModelError, match="known to be empty"):
        openvino.prepare(cached(0))
    openvino.prepare(cached("p"))


@pytest.mark.parametrize(
    "operator", ["Pad", "QuantizeLinear", "DequantizeLinear", "QLinearAdd", "Attention", "FusedConv"]
)
@pytest.mark.parametrize("count", [0, 1])
def test_too_few_inputs(preset: type[omb.Preset], operator: str, count: int) -> None:
    model = contrib(operator, ["x"][:count], ["y"], [models.tensor("x", [2, 3])], {})
    with pytest.raises(omb.UnsupportedModelError):
        preset.prepare(model)


@pytest.mark.parametrize("keys", [3, 5])
def test_a_unidirectional_attention_of_more_keys_than_queries_is_refused(openvino: type[omb.Preset], keys: int) -> None:
    """The first keys counted, not the last ones."""
    given = [models.tensor("q", [2, 3, 8]), *(models.tensor(name, [2, keys, 8]) for name in "kv")]
    model = contrib("MultiHeadAttention", ["q", "k", "v"], ["y"], given, {}, num_heads=2, unidirectional=1)
    if keys == 3:
        openvino.prepare(model)
        return
    with pytest.raises(omb.UnsupportedModelError, match="unidirectional counts the first keys alone"):
        openvino.prepare(model)
