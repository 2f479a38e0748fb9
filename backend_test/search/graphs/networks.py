# SPDX-License-Identifier: Apache-2.0
"""Recipes: normalization, recurrent layers, attention, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Dims, NoFitError, Value, static
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe


@recipe("BatchNormalization")
def batch_normalization(d: Draft) -> list[Value]:
    channels = d.rng.randint(1, 3)
    d.x("T", dims=(d.b.dim(1), (channels, channels), *d.b.shape((0, 1, 2), 1)))
    second, third = ("T1" if "T1" in d.by_variable else "T"), ("T2" if "T2" in d.by_variable else "T")
    if d.since == 14:
        second = third = "U" if "U" in d.by_variable else "T"
    for var in (second, second, third):
        d.x(var, dims=static(channels), reuse=False, profile="ordinary")
    d.x(third, dims=static(channels), reuse=False, profile="ordinary", data=lambda a: np.abs(a.astype(float)) + 0.1)
    d.attr("epsilon", d.rng.choice((1e-5, 1e-2)), 0.5)
    d.attr("momentum", 0.8, 0.3)
    return d.done()


@recipe("InstanceNormalization")
def instance_normalization(d: Draft) -> list[Value]:
    channels = d.rng.randint(1, 3)
    d.x("T", dims=(d.b.dim(1), (channels, channels), *d.b.shape((1, 2), 2)))
    d.x("T", dims=static(channels))
    d.x("T", dims=static(channels))
    d.attr("epsilon", 1e-3, 0.5)
    return d.done()


@recipe("GroupNormalization")
def group_normalization(d: Draft) -> list[Value]:
    groups = d.rng.choice((1, 2))
    channels = groups * d.rng.randint(1, 2)
    d.x("T", dims=(d.b.dim(1), (channels, channels), *d.b.shape((1, 2), 2)))
    d.x("T", dims=static(channels))
    d.x("T", dims=static(channels))
    d.attr("num_groups", groups)
    d.attr("epsilon", 1e-3, 0.5)
    return d.done()


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(d: Draft) -> list[Value]:
    layer = d.op_type == "LayerNormalization"
    first = d.x("T", ranks=(1, 2, 3), least=2)
    assert first.dims is not None
    axis = d.axis(len(first.dims), negative_since=0)
    d.attr("axis", axis, 1 if axis != -1 else 0.5)
    normal: Dims = first.dims[axis:]
    d.x("T" if layer else "V", dims=normal)
    if layer and d.b.chance(0.6):
        d.x("T", dims=normal)
    d.attr("epsilon", d.rng.choice((1e-5, 1e-3)), 0.5)
    return d.done(d.rng.choice((1, 1, 3)) if layer else 1)


@recipe("LpNormalization")
def lp_normalization(d: Draft) -> list[Value]:
    first = d.x("T", ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    d.attr("axis", d.axis(len(first.dims)), 0.7)
    d.attr("p", d.rng.choice((1, 2)), 0.6)
    return d.done()


@recipe("MeanVarianceNormalization")
def mean_variance(d: Draft) -> list[Value]:
    d.x("T", ranks=(4,), least=2, among=[TensorProto.FLOAT])
    d.attr("axes", d.rng.choice(([0, 2, 3], [2, 3], [1])), 0.5)
    return d.done()


@recipe("LRN")
def lrn(d: Draft) -> list[Value]:
    d.x("T", ranks=(4,), least=1)
    d.attr("size", d.rng.choice((1, 2, 3, 5)))
    d.attr("alpha", d.rng.choice((1e-4, 0.5)), 0.6)
    d.attr("beta", d.rng.choice((0.75, 0.5)), 0.5)
    d.attr("bias", d.rng.choice((1.0, 2.0)), 0.5)
    return d.done()


@recipe("Dropout")
def dropout(d: Draft) -> list[Value]:
    d.x("T")
    if d.since < 12:
        d.attr("ratio", 0.3, 0.6)
        return d.done(d.rng.choice((1, 2)) if d.since >= 10 else 1)
    if d.b.chance(0.5):
        d.given(0.3, kind=d.kind("T1"))
        if d.b.chance(0.5):
            d.given(False, kind=TensorProto.BOOL)
    return d.done(d.rng.choice((1, 2)))


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@recipe("RNN", "GRU", "LSTM")
def recurrent(d: Draft) -> list[Value]:
    gates, hidden, width = _GATES[d.op_type], d.rng.randint(1, 3), d.rng.randint(1, 3)
    direction = d.rng.choice(("forward", "forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    layout = d.attr("layout", 1, 0.15) or 0
    length, batch = d.b.dim(1), d.b.dim(1)
    small: dict[str, Any] = {"profile": "ordinary", "constant": None if d.b.chance(0.3) else True, "reuse": False}
    d.x("T", dims=(batch, length, (width, width)) if layout else (length, batch, (width, width)))
    d.x("T", dims=static(ways, gates * hidden, width), **small)
    d.x("T", dims=static(ways, gates * hidden, hidden), **small)
    if d.b.chance(0.6):
        d.x("T", dims=static(ways, 2 * gates * hidden), **small)
    else:
        d.skip()
    if d.b.chance(0.35):
        one, two = ([d.rng.randint(1, length[run]) for _ in range(batch[run])] for run in (0, 1))
        d.given(one, two, kind=TensorProto.INT32)
    else:
        d.skip()
    state: Dims = (batch, (ways, ways), (hidden, hidden)) if layout else ((ways, ways), batch, (hidden, hidden))
    for _ in range(2 if d.op_type == "LSTM" else 1):
        if d.b.chance(0.4):
            d.x("T", dims=state, reuse=False, profile="ordinary")
        else:
            d.skip()
    if d.op_type == "LSTM" and d.b.chance(0.15):
        d.x("T", dims=static(ways, 3 * hidden), **small)
    d.attr("direction", direction, 1 if direction != "forward" else 0.3)
    d.attr("hidden_size", hidden, 0.9)
    d.attr("linear_before_reset", d.rng.randrange(2), 0.5)
    d.attr("input_forget", 1, 0.05)
    d.attr("clip", d.rng.choice((0.5, 3.0)), 0.15)
    if d.b.chance(0.15):
        usual = list(_ACTIVATIONS[d.op_type])
        usual[-1] = d.rng.choice(("Relu", "Tanh", "Sigmoid"))
        d.attr("activations", usual * ways)
    return d.done(3 if d.op_type == "LSTM" else 2)


@recipe("Attention")
def attention(d: Draft) -> list[Value]:
    heads, size, value_size = d.rng.randint(1, 2), d.rng.choice((2, 4)), d.rng.choice((2, 3, 4))
    groups = d.rng.choice((1, 1, 2))
    batch, queries, keys = d.b.dim(1), d.b.dim(1), d.b.dim(1)
    packed = d.b.chance(0.4)
    if d.kind("T1", [k for k in d.allowed("T1") if k in v.FLOATS]) not in d.allowed("T2"):
        raise NoFitError("K and V of other types")
    d.settled["T2"] = d.settled["T1"]
    all_heads = heads * groups

    def shaped(count: int, length: tuple[int, int], width: int) -> Dims:
        if packed:
            return (batch, length, (count * width, count * width))
        return (batch, (count, count), length, (width, width))

    d.x("T1", dims=shaped(all_heads, queries, size), reuse=False)
    d.x("T1", dims=shaped(heads, keys, size), reuse=False)
    d.x("T2", dims=shaped(heads, keys, value_size), reuse=False)
    if packed:
        d.attr("q_num_heads", all_heads)
        d.attr("kv_num_heads", heads)
    if d.b.chance(0.4):
        kind = d.kind("U", [k for k in d.allowed("U") if k in (TensorProto.BOOL, d.settled["T1"])])
        mask = d.x("U", dims=(queries, keys), reuse=False, profile="ordinary")
        assert mask.kind == kind
    d.attr("is_causal", d.rng.randrange(2), 0.4)
    d.attr("scale", d.rng.choice((0.5, 1.0)), 0.3)
    d.attr("softcap", d.rng.choice((1.0, 5.0)), 0.2)
    return d.done()


@recipe("RotaryEmbedding")
def rotary(d: Draft) -> list[Value]:
    batch, length, heads, half = d.b.dim(1), d.b.dim(1), d.rng.randint(1, 2), d.rng.randint(1, 2)
    d.x("T", dims=(batch, (heads, heads), length, (2 * half, 2 * half)), reuse=False)
    positions = 6
    if d.b.chance(0.6):
        d.x("T", dims=static(positions, half), reuse=False)
        d.x("T", dims=static(positions, half), reuse=False)
        one, two = (
            np.array([d.rng.randrange(positions) for _ in range(batch[r] * length[r])]).reshape(batch[r], length[r])
            for r in (0, 1)
        )
        d.given(one, two)
    else:
        d.x("T", dims=(batch, length, (half, half)), reuse=False)
        d.x("T", dims=(batch, length, (half, half)), reuse=False)
    d.attr("interleaved", d.rng.randrange(2), 0.5)
    return d.done()


@recipe("SwiGLU")
def swiglu(d: Draft) -> list[Value]:
    first = d.x("T")
    d.x("T", dims=first.dims)
    d.attr("alpha", d.rng.choice((1.0, 1.5)), 0.5)
    return d.done()


@recipe("CausalConvWithState")
def causal_conv(d: Draft) -> list[Value]:
    channels, kernel = d.rng.randint(1, 3), d.rng.randint(1, 3)
    batch = d.b.dim(1)
    d.x("T", dims=(batch, (channels, channels), d.b.dim(1)), reuse=False)
    d.x("T", dims=static(channels, 1, kernel), reuse=False)
    if d.b.chance(0.5):
        d.x("T", dims=static(channels))
        if d.b.chance(0.5) and kernel > 1:
            d.x("T", dims=(batch, (channels, channels), (kernel - 1, kernel - 1)))
    d.attr("activation", d.rng.choice(("none", "silu", "swish")), 0.5)
    return d.done(2)


@recipe("LinearAttention")
def linear_attention(d: Draft) -> list[Value]:
    heads, size = d.rng.randint(1, 2), d.rng.choice((2, 4))
    batch, length = d.b.dim(1), d.b.dim(1)
    dims: Dims = (batch, length, (heads * size, heads * size))
    for _ in range(3):
        d.x("T", dims=dims, reuse=False, profile="ordinary")
    d.attr("q_num_heads", heads)
    d.attr("kv_num_heads", heads)
    d.attr("update_rule", "linear")
    d.attr("scale", 0.5, 0.5)
    return d.done(2)


@recipe("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(d: Draft) -> list[Value]:
    classes = d.rng.randint(2, 4)
    batch, rest = d.b.dim(1), d.b.shape((0, 1, 2), 1)
    d.x("T", dims=(batch, (classes, classes), *rest), profile="ordinary")
    made = []
    for run in (0, 1):
        shape = (batch[run], *(r[run] for r in rest))
        made.append(np.array([d.rng.randrange(classes) for _ in range(int(np.prod(shape)))]).reshape(shape))
    d.given(made[0], made[1], kind=d.kind("Tind"))
    if d.b.chance(0.4):
        d.x("T", dims=static(classes), reuse=False, data=lambda a: np.abs(a.astype(float)) + 0.1)
    d.attr("reduction", d.rng.choice(("none", "mean", "sum")), 0.8)
    d.attr("ignore_index", d.rng.randrange(classes), 0.3)
    return d.done(d.rng.choice((1, 2)) if d.op_type.startswith("Softmax") else 1)
