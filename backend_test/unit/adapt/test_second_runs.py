# SPDX-License-Identifier: Apache-2.0
"""Forms whose result hangs on what is known only at run time, on one input, another, and the first again.

What an engine keeps of the first run (shapes, branches, lengths) must not show in the second. A form that a preset
refuses is named in `REFUSED`: one that is refused without being named there fails, and so does one that no longer is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import onnx_multi_backend as omb

GENERATOR = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def shown(batch: int, keys: int) -> np.ndarray:
    """A mask that hides the last key of the first row."""
    mask = np.ones((batch, 1, 1, keys), bool)
    mask[0, ..., -1] = False
    return mask


def attended(q: np.ndarray, k: np.ndarray, bias: np.ndarray) -> np.ndarray:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True) @ k)


class Form(NamedTuple):
    """A graph, its inputs run after run, and what ONNX says that comes out.

    A few nodes beside it see to it that OpenVINO's execution provider takes small graphs as well.
    """

    graph: str
    runs: Sequence[Sequence[Any]]
    right: Callable[..., Any]
    opset: int = 18
    weights: dict[str, np.ndarray] = {}

    def model(self) -> ModelProto:
        head = f'<ir_version: 10, opset_import: ["": {self.opset}]> g '
        model = onnx.parser.parse_model(head + self.graph)
        model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in self.weights.items())
        beside = onnx.parser.parse_graph(
            "g (float[1] beside) => (float[1] b3) { b0 = Relu(beside) b1 = Sigmoid(b0) b2 = Tanh(b1) b3 = Sqrt(b2) }"
        )
        model.graph.node.extend(beside.node)
        model.graph.input.extend(beside.input)
        model.graph.output.extend(beside.output)
        return model


def softmax(x: np.ndarray, axis: int = 1) -> np.ndarray:
    rows = x.reshape(*x.shape[:axis], -1)
    e = np.exp(rows - rows.max(-1, keepdims=True))
    return np.asarray((e / e.sum(-1, keepdims=True)).reshape(x.shape))


def normalized(x: np.ndarray, size: int) -> np.ndarray:
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        total[:, c] = (x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(1)
    return np.asarray(x / (1 + 0.5 / size * total) ** 0.75)


def quantized(x: np.ndarray, scale: Any, zero: Any, kind: Any) -> np.ndarray:
    info = np.iinfo(kind)
    return np.asarray(np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(kind))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm(x: np.ndarray, lengths: np.ndarray, w: np.ndarray, r: np.ndarray, *, backwards: bool) -> list[np.ndarray]:
    """One direction. Source: LSTM's documentation, with the usual activations and no bias."""
    steps, batch, size = len(x), x.shape[1], r.shape[-1]
    all_steps, last, cells = np.zeros((steps, 1, batch, size)), np.zeros((1, batch, size)), np.zeros((1, batch, size))
    for b in range(batch):
        h = c = np.zeros(size)
        order = range(lengths[b])
        for t in reversed(order) if backwards else order:
            i, o, f, g = np.split(w[0] @ x[t, b] + r[0] @ h, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            all_steps[t, 0, b] = h
        last[0, b], cells[0, b] = h, c
    return [all_steps, last, cells]


def both_ways(x: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    ways = [lstm(x, lengths, W[i : i + 1], R[i : i + 1], backwards=bool(i)) for i in range(2)]
    return [np.concatenate([way[i] for way in ways], axis) for i, axis in enumerate((1, 0, 0))]


def filled(x: np.ndarray, lengths: np.ndarray, value: float) -> np.ndarray:
    """The sequences, with a value behind their ends."""
    return np.where(np.arange(len(x))[:, None, None] < lengths[:, None], x, np.float32(value))


W, R = floats(2, 12, 4) * np.float32(0.5), floats(2, 12, 3) * np.float32(0.5)
BOXES = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6], [9, 9, 10, 10]]])
SCORES = np.float32([[[0.9, 0.8, 0.7, 0.6]]])
LENGTHS = [
    (floats(5, 3, 4), np.int32([5, 2, 3])),
    (floats(7, 3, 4), np.int32([1, 7, 4])),
]
IMAGES = [(floats(1, 2, 5, 5),), (floats(2, 2, 6, 8),)]

FORMS: dict[str, Form] = {
    "Softmax of opset 11": Form(
        "(float[a, b, c] x) => (float[a, b, c] y) { y = Softmax <axis = 1> (x) }",
        [(floats(2, 3, 4),), (floats(3, 2, 5),)],
        softmax,
        11,
    ),
    "Softmax of opset 11, of a rank that ONNX does not infer": Form(
        """(float[a, b, c] x) => (float[a, b, c] y, float[a, b, c] z) {
            t = Shape (x) f = Cast <to = 1> (t) i = Cast <to = 7> (f) s = Reshape (x, i)
            y = Softmax <axis = 1> (s) z = Softmax <axis = -1> (s) }""",
        [(floats(2, 3, 4),), (floats(3, 2, 5),)],
        lambda x: [softmax(x), softmax(x, 2)],
        11,
    ),
    "LRN of an even size": Form(
        "(float[a, b, c, d] x) => (float[a, b, c, d] y) { y = LRN <size = 2, alpha = 0.5> (x) }",
        [(floats(1, 4, 2, 2),), (floats(2, 7, 3, 1),)],
        lambda x: normalized(x, 2),
        13,
    ),
    "QuantizeLinear along axis 0": Form(
        """(float[a, b] x) => (int8[a, b] y) <float[2] s = {0.1, 0.3}, int8[2] z = {-8, 10}> {
            y = QuantizeLinear <axis = -2> (x, s, z) }""",
        [(floats(2, 3) * 9,), (floats(2, 5) * 9,)],
        lambda x: quantized(x, np.float32([[0.1], [0.3]]), np.array([[-8], [10]]), np.int8),
        13,
    ),
    "16 bits that are a limit": Form(
        """(float[a, b] x) => (float[a, b] y) <float s = {0.0001}, uint16 z = {0}> {
            q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) y = Mul (d, d) }""",
        [(floats(2, 3) * 9,), (floats(4, 5) * 9,)],
        lambda x: (quantized(x, np.float32(1e-4), 0, np.uint16) * np.float32(1e-4)) ** 2,
        21,
    ),
    "NonMaxSuppression, the threshold an input": Form(
        """(float[1, n, 4] b, float[1, 1, n] s, float[1] t) => (int64[m, 3] y) <int64[1] k = {9}> {
            y = NonMaxSuppression (b, s, k, t) }""",
        [(BOXES, SCORES, np.float32([0])), (BOXES, SCORES, np.float32([0.95]))],
        lambda b, s, t: [[0, 0, i] for i in ((0, 2, 3) if t == 0 else range(4))],
    ),
    "NonMaxSuppression without a threshold": Form(
        """(float[1, n, 4] b, float[1, 1, n] s) => (int64[m, 3] y) <int64[1] k = {9}> {
            y = NonMaxSuppression (b, s, k) }""",
        [(BOXES, SCORES), (BOXES[:, 1:], SCORES[:, :, 1:])],
        lambda b, s: [[0, 0, i] for i in ((0, 2, 3) if s.shape[2] == 4 else (0, 1, 2))],
    ),
    "Range": Form(
        "(int64 a, int64 b, int64 c) => (int64[n] y) { y = Range (a, b, c) }",
        [(np.array(0), np.array(5), np.array(-2)), (np.array(5), np.array(-1), np.array(-2))],
        np.arange,
    ),
    "Range of a known step": Form(
        "(float a, float b) => (float[n] y) <float c = {-0.5}> { y = Range (a, b, c) }",
        [(np.float32(1), np.float32(3)), (np.float32(3), np.float32(1))],
        lambda a, b: np.arange(a, b, -0.5, np.float32),
    ),
    "Range from 0 upwards": Form(
        "(int64 a) => (int64[n] y) <int64 z = {0}, int64 c = {1}> { y = Range (z, a, c) }",
        [(np.array(n),) for n in (-3, 4, 0, -1)],
        lambda a: np.arange(max(a, 0)),
    ),
    "Range from 0 upwards to less than a size": Form(
        """(float[n] x) => (int64[m] y) <int64 z = {0}, int64 c = {1}, int64 d = {3}> {
            s = Shape (x) e = Squeeze (s) a = Sub (e, d) y = Range (z, a, c) }""",
        [(np.zeros(n, np.float32),) for n in (5, 1, 4, 2)],
        lambda x: np.arange(max(len(x) - 3, 0)),
    ),
    "MaxPool with a window beyond the image": Form(
        """(float[a, b, c, d] x) => (float[a, b, e, f] y) {
            y = MaxPool <kernel_shape = [1, 1], strides = [1, 3], ceil_mode = 1> (x) }""",
        IMAGES,
        lambda x: x[:, :, :, ::3],
    ),
    "AveragePool with a window beyond the image": Form(
        """(float[a, b, c, d] x) => (float[a, b, e, f] y) {
            y = AveragePool <kernel_shape = [1, 1], strides = [2, 3], ceil_mode = 1> (x) }""",
        IMAGES,
        lambda x: x[:, :, ::2, ::3],
        19,
    ),
    "LSTM whose sequences differ in length": Form(
        """(float[t, n, 4] x, int32[n] l) => (float[t, 2, n, 3] y, float[2, n, 3] h, float[2, n, 3] c) {
            y, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, , l) }""",
        LENGTHS,
        both_ways,
        weights={"w": W, "r": R},
    ),
    "LSTM whose sequences end before large numbers": Form(
        """(float[t, n, 4] x, int32[n] l) => (float[t, 2, n, 3] y, float[2, n, 3] h, float[2, n, 3] c) {
            y, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, , l) }""",
        [(filled(x, ends, value), ends) for value in (-1e38, 1e38) for x, ends in LENGTHS],
        both_ways,
        weights={"w": W, "r": R},
    ),
    "Attention of one query": Form(
        """(float[1, 1, q, 4] q, float[1, 1, k, 4] k) => (float[1, 1, q, 4] y) {
            y = Attention <is_causal = 1> (q, k, k) }""",
        [(floats(1, 1, 1, 4), floats(1, 1, 3, 4)), (floats(1, 1, 1, 4), floats(1, 1, 5, 4))],
        lambda q, k: k[:, :, :1],
        23,
    ),
    "Attention, one row of the mask for all queries": Form(
        """(float[n, 2, q, 4] q, float[n, 2, k, 4] k, bool[n, 1, 1, k] m) => (float[n, 2, q, 4] y) {
            y = Attention (q, k, k, m) }""",
        [(floats(n, 2, q, 4), floats(n, 2, k, 4), shown(n, k)) for n, q, k in ((2, 3, 3), (3, 5, 4), (1, 1, 2))],
        lambda q, k, m: attended(q, k, np.where(m, 0, -np.inf)),
        23,
    ),
    "Attention without an axis of heads, one row of the mask": Form(
        """(float[n, q, 4] q, float[n, k, 4] k, float[1, k] m) => (float[n, q, 4] y) {
            y = Attention <q_num_heads = 1, kv_num_heads = 1> (q, k, k, m) }""",
        [(floats(n, q, 4), floats(n, k, 4), floats(1, k)) for n, q, k in ((2, 3, 3), (3, 5, 4))],
        attended,
        23,
    ),
    "If of fixed shapes": Form(
        """(float[2, 3] x, bool c) => (float[2, 3] y) {
            y = If (c) <then_branch = t () => (float[2, 3] p) { p = Exp (x) },
                        else_branch = e () => (float[2, 3] q) { q = Neg (x) }> }""",
        [(floats(2, 3), np.array(True)), (floats(2, 3), np.array(False))],
        lambda x, c: np.exp(x) if c else -x,
    ),
    "If of shapes known at run time": Form(
        """(float[n, 3] x, bool c) => (float[n, 3] y) {
            y = If (c) <then_branch = t () => (float[n, 3] p) { p = Exp (x) },
                        else_branch = e () => (float[n, 3] q) { q = Neg (x) }> }""",
        [(floats(2, 3), np.array(True)), (floats(2, 3), np.array(False)), (floats(4, 3), np.array(False))],
        lambda x, c: np.exp(x) if c else -x,
    ),
    "Loop": Form(
        """(int64 n, float[a, 3] x) => (float[a, 3] y) <bool go = {1}> {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[a, 3] v) => (bool d, float[a, 3] w) {
                d = Identity(c) w = Add(v, v) }> }""",
        [(np.array(n), floats(rows, 3)) for n, rows in ((3, 2), (1, 5), (0, 5), (-2, 4))],
        lambda n, x: x * 2 ** max(n, 0),
    ),
    "Loop with a state that is not read": Form(
        """(int64 n, float[a, 3] x, float[b, 3] z) => (float[c, 3] y) <bool go = {1}> {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[d, 3] v) => (bool e, float[f, 3] w) {
                e = Identity(c) w = Concat <axis = 0> (z, z) }> }""",
        [(np.array(n), floats(2, 3), floats(2, 3)) for n in (0, 2, 0, -1)],
        lambda n, x, z: np.concatenate([z, z]) if n > 0 else x,
    ),
    "Loop with a state that only a loop inside reads, in vain": Form(
        """(int64 n, float[3] x, float[3] z) => (float[3] y) <int64 once = {1}, bool go = {1}> {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] v) => (bool e, float[3] w) {
                e = Identity(c)
                u = Loop (once, go, v) <body = b (int64 j, bool d, float[3] s) => (bool f, float[3] t) {
                    f = Identity(d) t = Neg(z) }>
                w = Identity(u) }> }""",
        [(np.array(n), floats(3), floats(3)) for n in (0, 2, 0)],
        lambda n, x, z: -z if n > 0 else x,
    ),
    "Reshape": Form(
        "(float[a, b] x, int64[3] s) => (float[c, d, e] y) { z = Reshape (x, s) y = Neg (z) }",
        [(floats(4, 6), ints(2, 3, 4)), (floats(2, 5), ints(5, 1, -1))],
        lambda x, s: -x.reshape(s),
    ),
    "Slice": Form(
        "(float[a, b] x, int64[2] i, int64[2] j) => (float[c, d] y) { z = Slice (x, i, j) y = Neg (z) }",
        [(floats(4, 6), ints(1, 2), ints(3, 6)), (floats(5, 5), ints(-2, 0), ints(9, -3))],
        lambda x, i, j: -x[i[0] : j[0], i[1] : j[1]],
    ),
    "Tile": Form(
        "(float[a, b, c, d] x, int64[4] r) => (float[e, f, g, h] y) { y = Tile (x, r) }",
        [(floats(3, 2, 4, 2), ints(1, 2, 2, 2)), (floats(1, 2, 2, 3), ints(2, 3, 2, 1))],
        np.tile,
    ),
    "Expand": Form(
        "(float[a, b] x, int64[2] s) => (float[c, d] y) { z = Expand (x, s) y = Neg (z) }",
        [(floats(1, 3), ints(4, 3)), (floats(2, 1), ints(2, 5))],
        lambda x, s: -np.broadcast_to(x, s),
    ),
    "Pad": Form(
        "(float[a, b] x, int64[4] p) => (float[c, d] y) { y = Pad (x, p) }",
        [(floats(2, 3), ints(0, 1, 1, 2)), (floats(3, 2), ints(2, 0, 0, 0))],
        lambda x, p: np.pad(x, [(p[0], p[2]), (p[1], p[3])]),
    ),
    "Resize by scales": Form(
        "(float[1, 1, a, b] x, float[4] s) => (float[1, 1, c, d] y) { y = Resize (x, , s) }",
        [(floats(1, 1, 2, 3), np.float32([1, 1, 2, 3])), (floats(1, 1, 4, 2), np.float32([1, 1, 3, 1]))],
        lambda x, s: x.repeat(int(s[2]), 2).repeat(int(s[3]), 3),
    ),
    "TopK": Form(
        "(float[a] x, int64[1] k) => (float[c] y, int64[c] i) { y, i = TopK (x, k) }",
        [(np.float32([2, 7, 1, 3, 4, 8, 6]), ints(5)), (np.float32([1, 2, 3]), ints(2))],
        lambda x, k: [np.sort(x)[::-1][: k[0]], np.argsort(-x, kind="stable")[: k[0]]],
    ),
    "TopK of equal values": Form(
        "(float[a] x, int64[1] k) => (float[c] y, int64[c] i) { y, i = TopK (x, k) }",
        [(np.float32([2, 7, 2, 2, 2, 7, 7]), ints(5)), (np.float32([1, 1, 3]), ints(2))],
        lambda x, k: [np.sort(x)[::-1][: k[0]], np.argsort(-x, kind="stable")[: k[0]]],
    ),
    "NonZero": Form(
        "(float[a, b] x) => (int64[2, n] y) { y = NonZero (x) }",
        [(np.float32([[0, 1], [2, 0]]),), (np.float32([[0, 0, 3]]),)],
        np.nonzero,
    ),
    "Gather": Form(
        "(float[a, b] x, int64[n] i) => (float[n, b] y) { z = Gather (x, i) y = Neg (z) }",
        [(floats(3, 2), ints(2, -1, 0)), (floats(5, 4), ints(4))],
        lambda x, i: -x[i],
    ),
    "Concat": Form(
        "(float[a, 2] x, float[b, 2] z) => (float[c, 2] y) { y = Concat <axis = 0> (x, z) }",
        [(floats(3, 2), floats(1, 2)), (floats(1, 2), floats(4, 2))],
        lambda x, z: np.concatenate([x, z]),
    ),
    "CumSum": Form(
        "(float[a, b] x, int64 i) => (float[a, b] y) { y = CumSum (x, i) }",
        [(floats(3, 2), np.array(0)), (floats(2, 4), np.array(1))],
        lambda x, i: np.cumsum(x, i),
    ),
}

#: What comes out wrong, which `docs/wrong-forms.md` tells.
WRONG = {("OrtOpenvino", "TopK of equal values")}


@pytest.mark.parametrize("name", FORMS)
def test_every_run_is_right(preset: type[omb.Preset], name: str) -> None:
    form = FORMS[name]
    if (preset.name, name) in WRONG:
        pytest.skip("the provider orders equal values as it likes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        prepared = preset.prepare(form.model())
    for values in (*form.runs, form.runs[0]):
        right = form.right(*values)
        expected = right if isinstance(right, list) and isinstance(right[0], np.ndarray) else [np.asarray(right)]
        got = list(prepared.run([*values, np.ones(1, np.float32)]))[: len(expected)]
        for one, other in zip(got, expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
