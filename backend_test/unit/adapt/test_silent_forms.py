# SPDX-License-Identifier: Apache-2.0
"""Ordinary forms that OpenVINO computes wrongly without a word come out right, in every run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.test_second_runs import Form

GENERATOR = np.random.default_rng(8)
X = GENERATOR.normal(size=(2, 3, 4)).astype(np.float32)
IMAGE = GENERATOR.normal(size=(1, 2, 4, 5)).astype(np.float32)
WEIGHTS = GENERATOR.integers(-9, 9, (4, 3)).astype(np.int8)


def log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    largest = x.max(axis, keepdims=True)
    return np.asarray(np.log(np.exp(x - largest).sum(axis, keepdims=True)) + largest)


def transposed(x: np.ndarray, w: np.ndarray, stride: int, begin: int) -> np.ndarray:
    """ConvTranspose of one image, cut to `stride` times its size."""
    kernel, (height, width) = w.shape[2], x.shape[2:]
    whole = np.zeros((1, w.shape[1], stride * height + kernel, stride * width + kernel))
    for i in range(height):
        for j in range(width):
            part = np.einsum("c,ckhw->khw", x[0, :, i, j], w)
            whole[0, :, stride * i : stride * i + kernel, stride * j : stride * j + kernel] += part
    cut = (slice(begin, begin + stride * size) for size in (height, width))
    return np.asarray(whole[(slice(None), slice(None), *cut)])


def shrunk(x: np.ndarray, limit: float, bias: float) -> np.ndarray:
    wide = x.astype(float)
    return np.where(wide < -limit, wide + bias, np.where(wide > limit, wide - bias, 0)).astype(x.dtype)


KERNEL = GENERATOR.normal(size=(2, 1, 3, 3)).astype(np.float32)
INTEGERS = np.arange(-6, 6)
_SIGNS = ("detect_positive", "detect_negative")

FORMS: dict[str, Form] = {
    **{
        f"{name}, opset {opset}{'' if keep else ', axis dropped'}": Form(
            f"(float[a, b, c] x) => (float[d, e, f] y) {{ y = {name} <axes = [2], keepdims = {keep}> (x) }}"
            if keep
            else f"(float[a, b, c] x) => (float[d, e] y) {{ y = {name} <axes = [2], keepdims = 0> (x) }}",
            [[abs(x)] for x in (X, X[:1] * 100, X)],
            lambda x, right=right, keep=keep: right(x) if keep else right(x)[..., 0],
            opset,
        )
        for name, right in (
            ("ReduceL1", lambda x: abs(x).sum(2, keepdims=True)),
            ("ReduceLogSum", lambda x: np.log(x.sum(2, keepdims=True))),
            ("ReduceLogSumExp", lambda x: log_sum_exp(x, 2)),
        )
        for opset in (11, 13, 17)
        for keep in (0, 1)
    },
    **{
        f"{name} of no axes": Form(
            f"(float[a, b] x) => (float[a, b] y) {{ y = {name} <noop_with_empty_axes = 1> (x) }}",
            [[X[0]], [X[0, :1].copy()]],
            right,
        )
        for name, right in (("ReduceL1", np.abs), ("ReduceL2", np.abs), ("ReduceSumSquare", np.square))
    },
    **{
        f"ReduceLogSumExp of large numbers, opset {opset}": Form(
            "(float[a, b] x) => (float[a, 1] y) <int64[1] axes = {1}> { y = ReduceLogSumExp (x, axes) }",
            [[np.float32([[1000, 1001], [-1000, -1001]])], [np.float32([[88, 89, 90]])]],
            lambda x: log_sum_exp(x.astype(float), 1),
            opset,
        )
        for opset in (18, 28)
    },
    **{
        f"ConvTranspose, {padding}": Form(
            f'(float[1, 2, a, b] x) => (float[1, 1, c, d] y) {{ y = ConvTranspose <auto_pad = "{padding}", '
            "strides = [2, 2]> (x, w) }",
            [[IMAGE], [IMAGE[..., :3]], [IMAGE]],
            lambda x, begin=begin: transposed(x, KERNEL, 2, begin),
            13,
            {"w": KERNEL},
        )
        for padding, begin in (("SAME_UPPER", 0), ("SAME_LOWER", 1))
    },
    **{
        f"ConvTranspose of any number of images, {padding}": Form(
            f'(float[n, 2, 4, 5] x) => (float[n, 1, c, d] y) {{ y = ConvTranspose <auto_pad = "{padding}", '
            "strides = [2, 2]> (x, w) }",
            [[IMAGE], [-IMAGE]],
            lambda x, begin=begin: transposed(x, KERNEL, 2, begin),
            13,
            {"w": KERNEL},
        )
        for padding, begin in (("SAME_UPPER", 0), ("SAME_LOWER", 1))
    },
    "LpNormalization of small numbers": Form(
        "(float[a, b] x) => (float[a, b] y) { y = LpNormalization (x) }",
        [[np.float32([[3e-4, 4e-4], [3, 4]])], [np.float32([[0, 0], [-6e-7, 8e-7]])]],
        lambda x: x / np.maximum(np.sqrt((x.astype(float) ** 2).sum(1, keepdims=True)), 1e-30),
    ),
    **{
        f"Shrink of {kind} by {bias}": Form(
            f"({kind}[a] x) => ({kind}[a] y) {{ y = Shrink <lambd = {limit}, bias = {bias}> (x) }}",
            [[INTEGERS.astype(kind)], [INTEGERS[2:5].astype(kind)]],
            lambda x, limit=limit, bias=bias: shrunk(x, limit, bias),
            19,
        )
        for kind in ("int8", "int16", "int32", "int64")
        for limit, bias in ((0.5, 0.5), (1.5, 1.0), (0.0, 1.7), (2.0, -0.5))
    },
    "MatMulInteger of a vector": Form(
        "(int8[a] v, int8[a, b] m) => (int32[b] y) { y = MatMulInteger (v, m) }",
        [[WEIGHTS[:, 0], WEIGHTS], [WEIGHTS[0], WEIGHTS.T.copy()]],
        lambda v, m: v.astype(np.int32) @ m.astype(np.int32),
    ),
    "MatMulInteger of vectors": Form(
        "(int8[a] v, int8[a] w) => (int32 y) { y = MatMulInteger (v, w) }",
        [[WEIGHTS[:, 0], WEIGHTS[:, 1]]],
        lambda v, w: np.asarray(v.astype(np.int32) @ w.astype(np.int32)),
    ),
    "weights scaled at run time": Form(
        "(float[a, 4] x, float s) => (float[a, 3] y) { v = DequantizeLinear (w, s) y = MatMul (x, v) }",
        [[X[0], np.float32(s)] for s in (0.5, 0.25, 0.5)],
        lambda x, s: x @ (WEIGHTS * s),
        weights={"w": WEIGHTS},
    ),
    "weights scaled at run time in an opset without axes": Form(
        "(float[a, 4] x, float s) => (float[a, 3] y) { v = DequantizeLinear (w, s) y = MatMul (x, v) }",
        [[X[0], np.float32(s)] for s in (0.5, 0.25, 0.5)],
        lambda x, s: x @ (WEIGHTS * s),
        11,
        weights={"w": WEIGHTS},
    ),
    "large weights scaled at run time": Form(
        "(float[a, 4] x, float s) => (float[a, 3000] y) { v = DequantizeLinear (w, s) y = MatMul (x, v) }",
        [[X[0], np.float32(s)] for s in (0.5, 0.25, 0.5)],
        lambda x, s: x @ (np.tile(WEIGHTS, (1, 1000)) * s),
        weights={"w": np.tile(WEIGHTS, (1, 1000))},
    ),
    "weights with scales and zero points at run time": Form(
        """(float[a, 4] x, float[3] s, int8[3] z) => (float[a, 3] y) {
        v = DequantizeLinear <axis = 1> (w, s, z) y = MatMul (x, v) }""",
        [[X[0], np.float32([0.5, 1, 2]) * f, np.int8([1, 2, 3])] for f in (1, 3, 1)],
        lambda x, s, z: x @ ((WEIGHTS.astype(int) - z) * s),
        weights={"w": WEIGHTS},
    ),
    "an input that a Cast passes on": Form(
        "(float[a, b] x) => (float[a, b] y) { y = Cast <to = 1> (x) }",
        [[X[0]], [X[0, :2, :2].copy()], [X[0, :1, :1].copy()], [X[0]]],
        lambda x: x,
    ),
    **{
        f"an input that a Cast passes on behind {name}": Form(
            f"(float[a, b] x) => (float[a, b] y) {{ v = {node} (x) y = Cast <to = 1> (v) }}",
            [[X[0]], [X[0, :2, :2].copy()], [X[0, :1, :1].copy()], [X[0]]],
            lambda x: x,
        )
        for name, node in (("an Identity", "Identity"), ("a Dropout", "Dropout"))
    },
    "an input that a Cast passes on beside one whose name is lost": Form(
        "(float[a] w, float[b, c] x) => (float[b, c] y, float[a] z) { y = Cast <to = 1> (x) z = Dropout (w) }",
        [[X[0, 0, :1].copy(), x] for x in (X[0], X[0, :2, :2].copy(), X[0, :1, :1].copy(), X[0])],
        lambda w, x: x,
    ),
    "Slice along axes known only at run time": Form(
        """(float[2, 3, 4] x, int64[1] axes) => (float[a, b, c] y) <int64[1] first = {1}, int64[1] last = {9223372036854775807}> {
        y = Slice (x, first, last, axes) }""",
        [[X, np.array([axis])] for axis in (1, -1, 0, 1)],
        lambda x, axes: np.take(x, range(1, x.shape[axes[0]]), axes[0]),
    ),
    "Slice to the start along axes known only at run time": Form(
        """(float[2, 3, 4] x, int32[2] axes) => (float[a, b, c] y) <int32[2] first = {-1, 2}, int32[2] last = {-100, -100},
        int32[2] step = {-1, -1}> { y = Slice (x, first, last, axes, step) }""",
        [[X, np.int32(axes)] for axes in ([1, 2], [0, -2], [1, 2])],
        lambda x, axes: np.flip(x[(slice(None), slice(None), slice(3))] if 2 in axes else x, tuple(axes)),
    ),
    "rows of a Loop that makes no step": Form(
        """(int64 n, float[2] x) => (float[a, 2] rows, float[2] last) <bool go = {1}> {
        last, rows = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] r) {
            d = Identity (c) w = Add (v, v) r = Neg (v) }> }""",
        [[np.array(n), X[0, 0, :2].copy()] for n in (3, 0, 1, 0)],
        lambda n, x: -np.array([x * 2**i for i in range(n)]).reshape(n, 2),
    ),
    "a size beside the rows of a Loop that makes no step": Form(
        """(int64 n, float[a, 2] x) => (float[c] y, float[d, e, 2] rows, float[f, 2] last)
        <bool go = {1}, int64[1] first = {0}, float one = {1}> {
        shape = Shape (x) size = Gather (shape, first) y = Expand (one, size)
        last, rows = Loop (n, go, x) <body = b (int64 i, bool c, float[h, 2] v) => (bool d, float[k, 2] w, float[l, 2] r) {
            d = Identity (c) w = Add (v, v) r = Neg (v) }> }""",
        [[np.array(n), X[0, :size, :2].copy()] for n, size in ((2, 2), (0, 3), (1, 1), (0, 2))],
        lambda n, x: np.ones(len(x)),
    ),
    "an element of a sequence at a position of the run": Form(
        """(int64[a] x, int64[b] y, int64[c] z, int32 i, float[3, d] v, float[e, f] w) => (int64[g] r, bool[h, k] q) {
        s = SequenceConstruct (x, y, z) r = SequenceAt (s, i) q = Equal (v, w) }""",
        [
            [*INTEGERS[: 3 * size].reshape(3, size).copy(), np.int32(-1), *[np.ones((3, width), np.float32)] * 2]
            for size, width in ((2, 4), (3, 1), (2, 4), (4, 9))
        ],
        lambda x, y, z, i, v, w: z,
        18,
    ),
    **{
        f"IsInf of {', '.join(signs) or 'nothing'} behind an operator on elements, opset {opset}": Form(
            f"(float[a, b] x) => (bool[c, d] y) <float two = {{2}}> {{ m = Mul (x, two) y = IsInf <{', '.join(f'{s} = {int(s in signs)}' for s in _SIGNS)}> (m) }}",
            [[np.float32([[1, np.inf, -np.inf, 2e38][:size]])] for size in (4, 2, 4)],
            lambda x, signs=signs: (
                (np.isposinf(2 * x) & ("detect_positive" in signs))
                | (np.isneginf(2 * x) & ("detect_negative" in signs))
            ),
            opset,
        )
        for signs in ((), _SIGNS[:1], _SIGNS[1:], _SIGNS)
        for opset in (10, 20)
    },
    "an element at a position from the end of the run": Form(
        """(float[a] x, float[b] y, float[c] z, int64 i) => (float[d] r) { s = SequenceConstruct (x, y, z) r = SequenceAt (s, i) }""",
        [[*np.split(X.ravel()[:6], [1, 3]), np.array(i)] for i in (-2, 0, -3, -1, 1)],
        lambda x, y, z, i: (x, y, z)[i],
        18,
    ),
    "what is left of a sequence without an element from the end": Form(
        """(int64[a] x, int64[a] y, int64 i) => (int64[b] r) <int64 first = {0}> {
        s = SequenceConstruct (x, y) t = SequenceErase (s, i) r = SequenceAt (t, first) }""",
        [[np.array([3, 2]), np.array([-5, -2]), np.array(i)] for i in (-1, 0, -2, 1)],
        lambda x, y, i: (x, y)[1 - i % 2],
        18,
    ),
    "LRN of float64 constants, which took no end": Form(
        """(float[2] x) => (double[1, 2, 1, 1] y, float[2] z) <double[1, 2, 1, 1] c = {1, 2}> {
        y = LRN <alpha = 0.5, size = 2> (c) z = Neg (x) }""",
        [[np.float32([1, 2])]],
        lambda x: (np.array([1, 2]) / (1 + 0.25 * np.array([5, 4])) ** 0.75).reshape(1, 2, 1, 1),
    ),
    "NonZero of what a Cast makes 0": Form(
        "(float[a] x) => (int64[1, b] y) { i = Cast <to = 7> (x) y = NonZero (i) }",
        [[np.float32([0.3, 1, 0, -0.7])], [np.float32([2, 0.99])]],
        lambda x: np.array(np.nonzero(x.astype(int))),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_come_out_wrong_without_a_word_are_right(preset: type[omb.Preset], form: str) -> None:
    model = FORMS[form].model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = preset.prepare(model, fallback="full")
    for values in FORMS[form].runs:
        right: Any = FORMS[form].right(*values)
        got = prepared.run([*values, np.ones(1, np.float32)])[0]
        assert got.shape == right.shape
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5 if got.dtype.kind == "f" else 0)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("to", [TensorProto.INT8, TensorProto.UINT16, TensorProto.INT32])
def test_non_zero_integers_of_an_opset_that_compares_few(openvino_ep: type[omb.Preset], to: int) -> None:
    """Before opset 11 Equal compares integers of 32 and 64 bits alone."""
    dtype = helper.tensor_dtype_to_np_dtype(to)
    made = models.model(
        [
            models.node("Cast", ["x"], ["c"], to=to),
            models.node("NonZero", ["c"], ["y"]),
            models.node("NonZero", ["k"], ["z"]),  # of a constant
            models.node("Exp", ["x"], ["e"]),
            models.node("Neg", ["e"], ["w"]),
        ],
        [models.tensor("x", (2, 3))],
        [
            models.tensor("y", (2, None), TensorProto.INT64),
            models.tensor("z", (2, None), TensorProto.INT64),
            models.tensor("w", (2, 3)),
        ],
        initializers={"k": np.int8([[3, 0, 1]])},
        opsets={"": 10},
    )
    x = np.float32([[0.3, 1, 0], [0.7, 2, 0.99]])
    got = openvino_ep.prepare(made).run([x])
    np.testing.assert_array_equal(got[0], np.nonzero(x.astype(dtype)))
    np.testing.assert_array_equal(got[1], [[0, 0], [0, 2]])


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_convolved_constants_are_added_to_once(openvino_ep: type[omb.Preset], operator: str, kind: str) -> None:
    """The kernel is of one element, so that the channels are added."""
    dtype = {"float": np.float32, "float16": np.float16}[kind]
    image = IMAGE[..., :2].astype(dtype)
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[2] x) => ({kind}[1, 2, 4, 2] y, {kind}[1, 2, 4, 2] z) {{
        y = {operator} (i, w, x) c = {operator} (i, w) b = Reshape (x, s) d = Exp (b) z = Add (c, d) }}"""
    )
    for name, array in {"i": image, "w": np.ones((2, 2, 1, 1), dtype), "s": np.array([2, 1, 1])}.items():
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    prepared = openvino_ep.prepare(made)
    channels = image.sum(1, keepdims=True)
    for values in ([1, 2], [3, -4], [1, 2]):
        x = np.array(values, dtype)[:, None, None]
        for got, right in zip(prepared.run([x.ravel()]), (channels + x, channels + np.exp(x)), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-2 if kind == "float16" else 1e-5, atol=1e-2)


@pytest.mark.parametrize("scales", ["float s", "float[3] s", "float[k] s"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint16])
def test_the_type_that_a_quantize_linear_names(openvino_ep: type[omb.Preset], scales: str, dtype: type) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[4, 3] x, {scales}) => (float[4, 3] y) {{
        a = Neg (x) b = Neg (a) q = QuantizeLinear <output_dtype = {kind}> (b, s) c = Cast <to = 1> (q) y = Neg (c) }}"""
    )
    x = np.float32([[-1, -300, 7], [1, 90, 7.6], [200, -2, 0], [-90000, 90000, 3]])
    s = np.float32([0.5, 1, 2]) if "[" in scales else np.float32(0.5)
    limits = np.iinfo(dtype)
    right = -np.clip(np.round(x / s), limits.min, limits.max)
    np.testing.assert_array_equal(openvino_ep.prepare(made).run([x, s])[0], right)


@pytest.mark.parametrize("preset_fixture", ["openvino", "openvino_ep"])
@pytest.mark.parametrize(("numbers", "size"), [("float", ""), ("float", "[1]"), ("float", "[3]"), ("float16", "")])
@pytest.mark.parametrize(("kind", "zero"), [("int8", 0), ("int8", 4), ("uint8", 128), ("uint8", 0)])
def test_both_ends_of_a_range_are_kept_apart(
    request: pytest.FixtureRequest, preset_fixture: str, numbers: str, size: str, kind: str, zero: int
) -> None:
    """Left as it is, a node that reads a scale for the whole tensor is wrong in one process of fifty alone."""
    preset: type[omb.Preset] = request.getfixturevalue(preset_fixture)
    count = 3 if size == "[3]" else 1
    made = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({numbers}[4, 3] x, {numbers}{size} s) => ({kind}[4, 3] y)
        <{kind}{size} z = {{{", ".join([str(zero)] * count)}}}> {{ a = Neg (x) b = Neg (a) y = QuantizeLinear (b, s, z) }}"""
    )
    prepared = preset.prepare(made)
    written = any(change.reason.endswith("taken for one") for change in prepared.adaptations)
    assert written is (count == 1 and (kind, zero) != ("uint8", 0))
    floats, limits = {"float": np.float32, "float16": np.float16}[numbers], np.iinfo(kind)
    x = np.array([[-1, -300, 7], [1, 90, 7.5], [200, -2, 0], [-9000, 9000, 3]], floats)
    for scale in (0.5, 2, 0.5):
        s = np.full(count, scale, floats)
        right = np.clip(np.round(np.float32(x) / np.float32(scale)) + zero, limits.min, limits.max)
        np.testing.assert_array_equal(prepared.run([x, s if size else s[0]])[0], right)


def test_float64_constants_are_not_convolved_in_float32(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime has no such kernel, and float32 would lose digits without a word."""
    graph = "g () => (double[1, 1, 4] y) <double[1, 1, 6] c = {1, 2, 3, 4, 5, 6.5}, double[1, 1, 3] w = {1, 2.1, 3}> { y = Conv (c, w) }"
    with pytest.raises(omb.UnsupportedModelError, match="lacks Conv"):
        ort_cpu.prepare(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 11]> {graph}'))
