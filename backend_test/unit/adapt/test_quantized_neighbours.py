# SPDX-License-Identifier: Apache-2.0
"""Quantized nodes and what is beside them, which engines compute in one kernel and take for something else, without a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

RNG = np.random.default_rng(5)
#: Scales of several sizes, and a zero point; weights and constants along one axis or another.
SCALES = "float s = {0.02}, uint8 z = {128}, float[4] each = {0.02, 0.05, 0.03, 0.06}, uint8[4] zeros = {128, 128, 120, 128}, int8 i = {0}"
SYMMETRIC = "q = QuantizeLinear (x, s, i) d = DequantizeLinear (q, s, i)"
QUANTIZED = "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)"


def numbers(*sizes: int) -> str:
    return ", ".join(f"{v:.3f}" for v in RNG.normal(size=int(np.prod(sizes))))


def whole(*sizes: int) -> str:
    return ", ".join(str(v) for v in RNG.integers(-20, 20, size=int(np.prod(sizes))))


def along(name: str, axis: int, rank: int) -> str:
    """Four numbers along an axis."""
    sizes = ", ".join("4" if i == axis else "1" for i in range(rank))
    return f"float[{sizes}] {name} = {{{numbers(4)}}}"


WEIGHTS = f"int8[4, 4] w = {{{whole(4, 4)}}}"
FILTERS = f"int8[4, 4, 1, 1] w = {{{whole(4, 4)}}}, float t = {{0.06}}"
ONES = "float[4] one = {1, 1, 1, 1}, float[4] none = {0, 0, 0, 0}, float e = {0.01}, int64[1] last = {2}"
DECOMPOSED = """m = ReduceMean <axes = [2]> (d) v = Sub (d, m) p = Mul (v, v) g = ReduceMean <axes = [2]> (p) h = Add (g, e)
    r = Sqrt (h) y = Div (v, r)"""

#: The declared sizes, the constants, the nodes, and how far a result may be off: a step of a scale, or rounding.
FORMS: dict[str, tuple[str, str, str, float]] = {
    **{
        f"{nodes}, quantized with several scales": (
            "n, 4, 4, 4",
            f"{FILTERS}, {WEIGHTS.replace('w =', 'u =')}",
            f"""{QUANTIZED} f = DequantizeLinear (w, t, i) g = DequantizeLinear (u, t, i) {nodes}
            o = QuantizeLinear <axis = 1> (r, each, zeros) y = DequantizeLinear <axis = 1> (o, each, zeros)""",
            0.07,
        )
        for nodes in (
            *(
                "r = Conv (d, f)",
                "r = Softmax (d)",
                "r = Sigmoid (d)",
                "r = MatMul (d, g)",
                "r = Add (d, d)",
                "r = LeakyRelu (d)",
            ),
            *(
                "r = GlobalAveragePool (d)",
                "r = AveragePool <kernel_shape = [2, 2]> (d)",
                "r = Concat <axis = 2> (d, d)",
            ),
            *("v = Conv (d, f) r = Relu (v)", "v = Softmax (d) r = Identity (v)"),
        )
    },
    # Weights that are scaled along the axis that is added up.
    "rows of a product": ("n, 4", WEIGHTS, "w0 = DequantizeLinear <axis = 0> (w, each) y = MatMul (x, w0)", 1e-3),
    "rows of a product of three axes": (
        "n, 3, 4",
        WEIGHTS,
        "w0 = DequantizeLinear <axis = 0> (w, each) y = MatMul (x, w0)",
        1e-3,
    ),
    **{
        f"{operator} by a first operand with scales along axis {axis}{', transposed' if turned else ''}": (
            "4, 4",
            f"uint8[4, 4] w = {{{whole(4, 4).replace('-', '')}}}",
            f"{QUANTIZED} w0 = DequantizeLinear <axis = {axis}> (w, each) {'w1 = Transpose (w0)' if turned else 'w1 = Identity (w0)'} y = {operator} (w1, d)",
            1e-3,
        )
        for operator in ("MatMul", "Gemm")
        for axis in (0, 1)
        for turned in (False, True)
    },
    "filters, scaled before they are turned": (
        "n, 4, 4, 4",
        f"{FILTERS}, uint8[4] other = {{128, 120, 128, 128}}",
        f"""{QUANTIZED} w0 = DequantizeLinear <axis = 1> (w, each) w1 = Transpose <perm = [1, 0, 2, 3]> (w0) c = Conv (d, w1)
        y = QuantizeLinear (c, s, z)""",
        1.01,
    ),
    "Gemm by columns without zero points": (
        "n, 4",
        WEIGHTS,
        f"{QUANTIZED} w0 = DequantizeLinear <axis = 1> (w, each) y = Gemm (d, w0)",
        1e-3,
    ),
    "rows, transposed": ("n, 4", WEIGHTS, "w0 = DequantizeLinear (w, each) y = Gemm <transB = 1> (x, w0)", 1e-3),
    "rows, by a Mul": (
        "n, 4",
        f"{WEIGHTS}, {along('k', 0, 2)}",
        "c = Cast <to = 1> (w) w0 = Mul (c, k) y = MatMul (x, w0)",
        1e-3,
    ),
    "rows, quantized": (
        "n, 4",
        WEIGHTS,
        f"{QUANTIZED} w0 = DequantizeLinear <axis = 0> (w, each) y = MatMul (d, w0)",
        5e-3,
    ),
    "rows of a Gemm, quantized": (
        "n, 4",
        WEIGHTS,
        f"{QUANTIZED} w0 = DequantizeLinear (w, each) t0 = Transpose <perm = [1, 0]> (w0) y = Gemm (d, t0)",
        5e-3,
    ),
    "channels of a convolution": (
        "n, 4, 2, 2",
        FILTERS,
        f"{QUANTIZED} w0 = DequantizeLinear <axis = 1> (w, each) a = Conv (d, w0) b = QuantizeLinear (a, s, z) y = DequantizeLinear (b, s, z)",
        0.021,
    ),
    # Activations with several scales.
    **{
        f"several scales, {operator.partition(' ')[0]}": (
            "3, 4, 4",
            FILTERS,
            f"""q = QuantizeLinear <axis = {axis}> (x, each, zeros) d = DequantizeLinear <axis = {axis}> (q, each, zeros)
            a = {operator} (d) b = QuantizeLinear (a, s, z) y = DequantizeLinear (b, s, z)""",
            0.021,
        )
        for operator, axis in (("Sigmoid", 1), ("AveragePool <kernel_shape = [2]>", 2), ("Softmax", 1), ("Relu", 2))
    },
    "several scales, MatMul": (
        "3, 4, 4",
        WEIGHTS,
        """q = QuantizeLinear (x, each, zeros) d = DequantizeLinear (q, each, zeros) w0 = DequantizeLinear (w, s) y = MatMul (d, w0)""",
        5e-3,
    ),
    # An epsilon beside the scale.
    **{
        f"epsilon of {name}": (sizes, f"{ONES}, {FILTERS}", f"{SYMMETRIC} {nodes}", 2e-3)
        for name, sizes, nodes in (
            ("a LayerNormalization", "n, 3, 4", "y = LayerNormalization <epsilon = 0.01> (d, one)"),
            ("an InstanceNormalization", "n, 4, m", "y = InstanceNormalization <epsilon = 0.01> (d, one, none)"),
            ("one that is written out", "2, 3, 4", DECOMPOSED),
            (
                "one behind a convolution",
                "n, 4, 3, 3",
                "w0 = DequantizeLinear (w, t) a = Conv (d, w0) b = Relu (a) y = InstanceNormalization <epsilon = 0.01> (b, one, none)",
            ),
        )
    },
    # Constants that are moved into the limits of a QuantizeLinear.
    **{
        f"two constants, along 1 and {other}": (
            "n, 4, 4, 4" if other else "4, 4, 4, 4",
            f"{along('a', 1, 4)}, {along('b', other, 4)}",
            "f = Mul (x, a) g = Add (b, f) h = Relu (g) y = QuantizeLinear (h, s, z)",
            1.01,
        )
        for other in (0, 2, 3)
    },
    "two factors": (
        "n, 4, 4",
        f"{along('a', 1, 3)}, {along('b', 1, 3)}",
        "f = Mul (x, a) g = Mul (f, b) y = QuantizeLinear (g, s, z)",
        1.01,
    ),
    "a constant and a Transpose": (
        "n, 4, k, k",
        along("a", 1, 4),
        "f = Mul (x, a) g = Transpose <perm = [1, 3, 0, 2]> (f) y = QuantizeLinear (g, s, z)",
        1.01,
    ),
    "scales behind a sum": (
        "4, 4, 4, 4",
        "int64[2] outer = {0, 3}",
        "f = ReduceSum (x, outer) y = QuantizeLinear <axis = 2> (f, each, zeros)",
        1.01,
    ),
    **{
        f"scales along the last axis, behind {node}": (
            "n, 20, 4",
            along("a", 2, 3),
            f"f = {node} y = QuantizeLinear <axis = -1> (f, each, zeros)",
            1.01,
        )
        for node in ("Relu (x)", "Mul (x, a)", "Tanh (x)")
    },
    "a factor and a summand, quantized elsewhere": (
        "4, 4, 4, 4",
        f"{along('a', 1, 4)}, {along('b', 0, 4)}",
        "f = Mul (x, a) y = Add (f, b) q = QuantizeLinear (x, s, z) v = DequantizeLinear (q, s, z)",
        1e-4,
    ),
    "a mean behind a normalization, quantized elsewhere": (
        "4, 4, 4",
        f"{ONES}, float[4] several = {{1, -2, 5, 7}}",
        """f = InstanceNormalization (x, several, each) g = Mul (f, e) y = ReduceMean <axes = [2]> (g)
        q = QuantizeLinear (x, s, z) v = DequantizeLinear (q, s, z)""",
        1e-4,
    ),
    **{
        f"a factor for each channel, {name}": (
            sizes,
            f"{ONES}, float[4] several = {{1, -2, 5, -0.7}}, {along('a', 1, 4)}",
            nodes,
            1.01,
        )
        for name, sizes, nodes in (
            ("of open sizes", "n, 4", "f = Mul (x, several) y = QuantizeLinear (f, s, i)"),
            ("and a summand", "n, 4", "f = Mul (several, x) g = Add (f, e) y = QuantizeLinear (g, s, z)"),
            ("of a normalization", "2, 4", "f = LayerNormalization (x, several) y = QuantizeLinear (f, s, i)"),
            (
                "before a pool",
                "2, 4, 4, 4",
                "f = Mul (x, a) g = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (f) y = QuantizeLinear (g, s, z)",
            ),
            (
                "before padding that counts",
                "n, 4, 4, 4",
                """f = BatchNormalization (x, several, several, none, one) g = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1], count_include_pad = 1> (f)
                y = QuantizeLinear (g, s, z)""",
            ),
        )
    },
    **{
        f"scales along axis {axis} behind a pool": (
            "4, 4, 4",
            FILTERS,
            f"f = AveragePool <kernel_shape = [1]> (x) y = QuantizeLinear <axis = {axis}> (f, each, zeros)",
            1.01,
        )
        for axis in (0, 1, 2)
    },
    "subtracted, of open sizes": (
        "i0, i1, i2",
        "float[1, 4, 1] a = {0.75, 0.57, 0.07, -0.9}",
        "f = Sub (x, a) y = QuantizeLinear (f, s, z)",
        1.01,
    ),
    **{
        f"{operator} of tokens, axes {axes}": (
            "n, 5, 4",
            "int64[2] two = {1, 2}, int64[1] second = {1}",
            f"{SYMMETRIC} {node}",
            2e-3,
        )
        for operator, axes, node in (
            ("ReduceMean", "1", "y = ReduceMean <axes = [1], keepdims = 0> (d)"),
            ("ReduceSum", "1", "y = ReduceSum (d, second)"),
            ("ReduceMean", "1 and 2", "y = ReduceMean <axes = [-2, -1]> (d)"),
            ("ReduceSum", "1 and 2", "y = ReduceSum <keepdims = 0> (d, two)"),
        )
    },
    **{
        f"the last axis of three, {name}": (
            "batch, 2, 2",
            "float two = {2}, int64[1] third = {2}, int64[1] one = {1}",
            f"{QUANTIZED} {nodes}",
            2e-3,
        )
        for name, nodes in (
            ("GlobalAveragePool", "y = GlobalAveragePool (d)"),
            ("ReduceMean", "y = ReduceMean <axes = [-1], keepdims = 0> (d)"),
            ("ReduceSum", "y = ReduceSum (d, third)"),
            ("scaled", "f = Mul (d, two) y = ReduceMean <axes = [2]> (f)"),
            ("Transpose", "f = Transpose <perm = [0, 2, 1]> (d) y = ReduceMean <axes = [2]> (f)"),
            ("Expand", "f = Expand (d, one) y = GlobalAveragePool (f)"),
        )
    },
    **{
        f"a reduction behind a Transpose of {what}, {name}": (
            sizes,
            "int64[1] two = {2}",
            f"q = QuantizeLinear (x, s, z) {moved} {node}",
            2e-3,
        )
        for sizes in ("3, 4, 5", "n, 4, 5")
        for what, moved in (
            ("integers", "t = Transpose <perm = [1, 0, 2]> (q) d = DequantizeLinear (t, s, z)"),
            ("numbers", "t = DequantizeLinear (q, s, z) d = Transpose <perm = [0, 2, 1]> (t)"),
        )
        for name, node in (
            (f"ReduceMin, {sizes}", "y = ReduceMin <axes = [1]> (d)"),
            (f"ReduceMax, {sizes}", "y = ReduceMax <axes = [1, 2], keepdims = 0> (d)"),
            (f"ReduceMean, {sizes}", "y = ReduceMean <axes = [2]> (d)"),
            (f"ReduceSum, {sizes}", "y = ReduceSum (d, two)"),
            (f"GlobalMaxPool, {sizes}", "y = GlobalMaxPool (d)"),
            (f"GlobalAveragePool, {sizes}", "y = GlobalAveragePool (d)"),
        )
    },
    **{
        f"a Pad along one axis, {name}": (
            sizes,
            f"int64[{2 * sizes.count(',') + 2}] pads = {{{pads}}}, float half = {{0.5}}",
            f"{QUANTIZED} y = Pad (d, pads{value})",
            2e-3,
        )
        for name, sizes, pads, value in (
            ("with a number", "n, 4, 4", "0, 0, 1, 0, 0, 1", ", half"),
            ("of one element", "n, 1, 1, 1", "0, 0, 1, 0, 0, 0, 1, 0", ""),
            ("of one element, with a number", "n, 4, 1", "0, 0, 0, 0, 0, 1", ", half"),
        )
    },
    "a global pool of shuffled channels": (
        "batch, 4, 4",
        "int64[4] apart = {-1, 2, 2, 4}, int64[3] joined = {-1, 4, 4}",
        f"{SYMMETRIC} f = Reshape (d, apart) g = Transpose <perm = [0, 2, 1, 3]> (f) h = Reshape (g, joined) y = GlobalAveragePool (h)",
        2e-3,
    ),
    # Stored weights of windows of 1x1, and what moves elements.
    **{
        f"1x1, {name}": ("n, 4, 4, 4", FILTERS, f"w0 = DequantizeLinear (w, t) {nodes}", 1e-3)
        for name, nodes in (
            ("Transpose behind", "a = Conv (x, w0) y = Transpose <perm = [0, 2, 1, 3]> (a)"),
            ("Transpose before", "a = Transpose <perm = [0, 3, 2, 1]> (x) y = Conv (a, w0)"),
            ("strides", "a = Conv <strides = [2, 2]> (x, w0) y = Transpose <perm = [0, 2, 3, 1]> (a)"),
            ("padding", "a = Transpose <perm = [0, 3, 1, 2]> (x) y = Conv <pads = [1, 1, 1, 1]> (a, w0)"),
            ("Reshape", "a = Conv <strides = [2, 2]> (x, w0) b = Add (a, t) y = Flatten (b)"),
        )
    },
    "1x1, quantized": (
        "n, 4, 4, 4",
        FILTERS,
        f"{QUANTIZED} w0 = DequantizeLinear (w, t) a = Conv <strides = [2, 2]> (d, w0) y = Transpose <perm = [0, 3, 2, 1]> (a)",
        0.03,
    ),
    **{
        f"a summand for each of n channels, of {sizes}": (
            sizes,
            f"float[{each}] c = {{3, -2}}",
            "a = Add (x, c) y = QuantizeLinear (a, s, z)",
            1.01,
        )
        for sizes, each in (("k, n", "2"), ("k, n, 4", "2, 1"), ("k, n, m, 3", "2, 1, 1"), ("3, n, 2, 2", "1, 2, 1, 1"))
    },
    "weights with a zero point that are turned": (
        "n, 4, 4, 4",
        f"{FILTERS}, int8 three = {{3}}",
        f"{QUANTIZED} w0 = DequantizeLinear (w, t, three) w1 = Transpose <perm = [1, 0, 2, 3]> (w0) y = ConvTranspose (d, w1)",
        1e-3,
    ),
    "rows of what is flattened": (
        "n, 4",
        WEIGHTS,
        f"{QUANTIZED} w0 = DequantizeLinear <axis = 0> (w, each) w1 = Flatten (w0) y = MatMul (d, w1)",
        1e-3,
    ),
    # A product that is read twice.
    **{
        f"product read twice, {name}": (
            "n, 4",
            "float two = {2}",
            f"{SYMMETRIC} q2 = QuantizeLinear (x, s, i) d2 = DequantizeLinear (q2, s, i) t = Transpose (d2) {nodes}",
            1.01,
        )
        for name, nodes in (
            ("MatMul", "a = MatMul (d, t) b = Relu (a) c = Add (a, b) y = QuantizeLinear (c, s, i)"),
            ("Gemm", "a = Gemm (d, t) b = Sigmoid (a) c = Mul (a, b) y = QuantizeLinear (c, s, i)"),
        )
    },
    # A convolution that is read twice.
    **{
        f"read twice, {name}": (
            "n, 4, 4, 4",
            f"{FILTERS}, float two = {{2}}",
            f"{QUANTIZED} w0 = DequantizeLinear (w, t) a = Conv (d, w0) {nodes}",
            0.03,
        )
        for name, nodes in (
            ("Relu", "b = Relu (a) y = Add (a, b)"),
            ("Abs", "b = Abs (a) y = Concat <axis = 1> (a, b)"),
            ("scaled", "c = Mul (a, two) b = Relu (c) y = Sub (c, b)"),
        )
    },
}


def unoptimized(model: ModelProto, x: np.ndarray, **more: np.ndarray) -> Sequence[np.ndarray]:
    """What ONNX Runtime makes of it node by node."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x, **more})


@pytest.mark.parametrize("form", FORMS)
def test_neighbours_are_computed_as_each_alone(preset: type[omb.Preset], form: str) -> None:
    sizes, constants, nodes, tolerance = FORMS[form]
    kind = ("int8" if "s, i)" in nodes else "uint8") if "y = QuantizeLinear" in nodes else "float"
    beside = ", float[] v" if " v = DequantizeLinear (q" in nodes else ""
    model = parsed(f"(float[{sizes}] x) => ({kind}[] y{beside}) <{SCALES}, {constants}> {{ {nodes} }}")
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    prepared = preset.prepare(model, fallback="full")
    rng = np.random.default_rng(0)  # whichever other tests run before
    known = {"n": 2, "m": 5, "k": 3, "i0": 2, "i1": 4, "i2": 3}
    for known["batch"], spread in ((2, 0.2), (5, 0.5)):
        x = rng.normal(size=[known.get(s) or int(s) for s in sizes.split(", ")]).astype(np.float32) * np.float32(spread)
        for made, right in zip(prepared.run(x), unoptimized(model, x), strict=True):
            assert made.shape == right.shape
            np.testing.assert_allclose(made.astype(float), right.astype(float), atol=tolerance, rtol=1e-3)


@pytest.mark.parametrize("root", ["s = Sqrt (v) r = Reciprocal (s) n = Mul (x, r)", "s = Sqrt (v) n = Div (x, s)"])
@pytest.mark.parametrize("sizes", ["3, 8", "n, 3, 4", "n, 3, m"])
def test_a_normalization_of_short_rows_that_is_written_out(preset: type[omb.Preset], sizes: str, root: str) -> None:
    """It ended the process on the built-in execution provider."""
    rank = sizes.count(",") + 1
    model = parsed(
        f"""(float[{sizes}] x) => (float[{", ".join("abc"[:rank])}] y) <float two = {{2}}, float e = {{0.001}}, float[1] k = {{0.5}}>
        {{ p = Pow (x, two) q = ReduceMean <axes = [-1], keepdims = 1> (p) v = Add (q, e) {root} g = Mul (n, k) y = Neg (g) }}"""
    )
    x = np.random.default_rng(rank).normal(size=(3, 8) if rank == 2 else (2, 3, 4)).astype(np.float32)
    right = -0.5 * x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.001)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)[0], right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bool", "float16", "int32"])
def test_a_half_and_its_cast_are_two_outputs(preset: type[omb.Preset], kind: str) -> None:
    """OpenVINO gives the dropped Cast's output the names of both."""
    model = parsed(
        f"({kind}[3] x) => (float16[3] h, float[3] y) {{ f = Cast <to = 1> (x) h = Cast <to = 10> (f) y = Cast <to = 1> (h) }}"
    )
    dtype = {"bool": np.bool_, "float16": np.float16, "int32": np.int32}[kind]
    made = preset.prepare(model, fallback="full").run(np.array([1, 0, 1], dtype))
    assert [m.dtype for m in made] == [np.float16, np.float32]
    for m in made:
        np.testing.assert_array_equal(m, [1, 0, 1])


def test_a_product_that_is_read_by_another_one(preset: type[omb.Preset]) -> None:
    """As the values of an attention are: a constant for each head behind it."""
    rng = np.random.default_rng(0)
    w, k = rng.normal(size=(4, 4)).astype(np.float32), np.float32([1, -20, 0.5, 3])
    model = parsed(
        f"""(float[n, 4, m, 4] x) => (float[] y) <float[4, 4] w = {{{", ".join(map(str, w.ravel()))}}}, float[1, 4, 1, 1] k = {{1, -20, 0.5, 3}}>
        {{ t = Transpose <perm = [0, 1, 3, 2]> (x) s = MatMul (x, t) p = Softmax (s) v = MatMul (x, w) a = MatMul (p, v) y = Mul (a, k) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = rng.normal(size=(2, 4, 3, 4)).astype(np.float32)
    right = unoptimized(model, x)[0]
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)[0], right, rtol=1e-4, atol=1e-4)
    assert np.abs(right).max() > np.abs(k).min()


@pytest.mark.parametrize(("sizes", "group"), [((4, 4, 1, 1), 1), ((4, 1, 3, 1), 4)])
def test_a_bias_beside_weights_of_the_run(preset: type[omb.Preset], sizes: tuple[int, ...], group: int) -> None:
    """Where another size is only known in a run, the bias was lost on its way into the limits of the quantization."""
    parts = " ".join(f"g{i} = Gather (shape, k{i}) u{i} = Unsqueeze (g{i}, first)" for i in range(4))
    model = parsed(
        f"""(float[n, 4, h, 4] x, float[{", ".join(map(str, sizes))}] w) => (float[] y)
        <{SCALES}, float[4] bias = {{1, -10, -5, 0.5}}, int64[1] first = {{0}},
        {", ".join(f"int64 k{i} = {{{i}}}" for i in range(4))}>
        {{ c = Conv <group = {group}> (x, w, bias) q = QuantizeLinear (c, s, i) d = DequantizeLinear (q, s, i) shape = Shape (d)
        {parts} turned = Concat <axis = 0> (u1, u2, u3, u0) y = Reshape (d, turned) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=k).astype(np.float32) for k in ((3, 4, 4, 4), sizes))
    (right,) = unoptimized(model, x, w=w)
    (made,) = preset.prepare(model, fallback="full").run({"x": x, "w": w})
    np.testing.assert_allclose(made, right, atol=0.021)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
@pytest.mark.parametrize("behind", ["v = Identity (m)", "v = Relu (m)", "v = Sigmoid (m)"])
def test_a_product_of_two_activations_that_is_read_twice(preset: type[omb.Preset], operator: str, behind: str) -> None:
    """One of both was computed in place of the product, and the other read that."""
    model = parsed(
        f"""(float[n, 4] x, float[4, 4] w) => (float[] v, int8[] y) <{SCALES}> {{ q = QuantizeLinear (x, s, i) d = DequantizeLinear (q, s, i)
        r = QuantizeLinear (w, s, i) e = DequantizeLinear (r, s, i) m = {operator} (d, e) {behind} y = QuantizeLinear (m, s, i) }}"""
    )
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
    right = unoptimized(model, x, w=w)
    for made, wanted in zip(preset.prepare(model, fallback="full").run({"x": x, "w": w}), right, strict=True):
        np.testing.assert_allclose(
            made.astype(float), wanted.astype(float), atol=1.01 if made.dtype == np.int8 else 1e-3
        )


@pytest.mark.parametrize("behind", ["y0 = Mul (f, half) y1 = Add (y0, c)", "y0 = Neg (f) y1 = Add (y0, c)"])
def test_a_product_by_constants_on_the_left(preset: type[omb.Preset], behind: str) -> None:
    """Scaled, shifted and quantized, some of the results were others."""
    rng = np.random.default_rng(0)
    model = parsed(
        f"""(float[n, 4] x) => (uint8[4, 4] y) <{SCALES}, float k = {{0.03}}, float half = {{0.5}}, float[4] c = {{-0.5, -0.2, -1, -1.8}},
        int8[4, 4] w = {{{", ".join(map(str, rng.integers(-127, 127, 16)))}}}> {{ q = QuantizeLinear (x, s, i) d = DequantizeLinear (q, s, i)
        w0 = DequantizeLinear (w, k, i) f = MatMul (w0, d) {behind} y = QuantizeLinear (y1, s, z) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for _ in range(25):
        x = 2 * rng.normal(size=(4, 4)).astype(np.float32)
        made, right = prepared.run(x)[0], unoptimized(model, x)[0]
        np.testing.assert_allclose(made.astype(float), right.astype(float), atol=1.01)
