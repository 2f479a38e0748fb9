# SPDX-License-Identifier: Apache-2.0
"""Graphs that are nearly what OpenVINO makes one operator of, or moves a node in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def _padded(x: np.ndarray, *pads: int) -> np.ndarray:
    return np.pad(x, list(zip(pads[:4], pads[4:], strict=True)))


def _blocks(x: np.ndarray) -> np.ndarray:
    """SpaceToDepth of blocks of 2."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(n, 4 * c, h // 2, w // 2)


def _leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, x * np.float32([1, 2, 3]))


_SLOPES = "float[3] w = {1, 2, 3}, float half = {0.5}"
#: By name: the sizes of x, the constants, the nodes, the rank of the result, and what it is.
FORMS: dict[str, tuple[str, str, str, int, Callable[[np.ndarray], np.ndarray]]] = {
    "a mean of what is turned": (
        "1, 3, 4",
        "",
        "t = Transpose <perm = [2, 0, 1]> (x) y = ReduceMean <axes = [2], keepdims = 0> (t)",
        2,
        lambda x: x.transpose(2, 0, 1).mean(2),
    ),
    "a maximum of what is turned, and rows of it": (
        "1, 3, 4, 5",
        "int64 i = {0}",
        "t = Transpose <perm = [3, 0, 1, 2]> (x) r = ReduceMax <axes = [2, 3], keepdims = 0> (t) y = Gather (r, i)",
        1,
        lambda x: x.transpose(3, 0, 1, 2).max((2, 3))[0],
    ),
    "slopes that are subtracted": (
        "2, 3, 3",
        _SLOPES,
        "p = Relu (x) n = Neg (x) r = Relu (n) m = Mul (r, w) y = Sub (p, m)",
        3,
        _leaky,
    ),
    "slopes of what is negated": (
        "2, 3, 4, 3",
        _SLOPES,
        "p = Relu (x) n = Neg (x) r = Relu (n) s = Neg (r) m = Mul (w, s) y = Add (m, p)",
        4,
        _leaky,
    ),
    "slopes of one channel": (
        "a, b, c",
        _SLOPES,
        "p = Relu (x) a = Abs (x) d = Sub (x, a) m = Mul (d, w) h = Mul (m, half) y = Add (p, h)",
        3,
        _leaky,
    ),
    "places behind two casts": (
        "2, 3",
        "",
        "r = Abs (x) i = Cast <to = 6> (r) f = Cast <to = 1> (i) y = NonZero (f)",
        2,
        lambda x: np.array(np.nonzero(np.trunc(np.abs(x)))),
    ),
    "places of a truth value behind two casts": (
        "2, 3",
        "",
        "r = Abs (x) i = Cast <to = 7> (r) b = Cast <to = 9> (i) y = NonZero (b)",
        2,
        lambda x: np.array(np.nonzero(np.trunc(np.abs(x)))),
    ),
    "elements of a slice from its end": (
        "2, 6",
        "int64[1] s = {0}, int64[1] e = {3}, int64[1] a = {1}, int64[2, 2] i = {-1, -3, 0, -2}",
        "r = Relu (x) t = Slice (r, s, e, a) y = GatherElements <axis = 1> (t, i)",
        2,
        lambda x: np.take_along_axis(np.maximum(x, 0)[:, :3], np.array([[-1, -3], [0, -2]]), 1),
    ),
    "blocks of padded channels": (
        "1, 4, 4, 6",
        "int64[8] p = {1, 0, 0, 0, 0, 0, 0, 0}",
        (
            "t = Transpose <perm = [1, 0, 2, 3]> (x) q = Pad (t, p) d = SpaceToDepth <blocksize = 2> (q) "
            "y = Transpose <perm = [1, 0, 2, 3]> (d)"
        ),
        4,
        lambda x: _blocks(_padded(x.transpose(1, 0, 2, 3), 1, 0, 0, 0, 0, 0, 0, 0)).transpose(1, 0, 2, 3),
    ),
    "blocks of other images": (
        "2, 4, 4, 6",
        "int64[8] p = {0, 0, 1, 0, 0, 0, 1, 0}, int64[4] r = {4, 2, 4, 6}",
        "t = Reshape (x, r) q = Pad (t, p) d = SpaceToDepth <blocksize = 2> (q) y = Transpose <perm = [1, 0, 2, 3]> (d)",
        4,
        lambda x: _blocks(_padded(x.reshape(4, 2, 4, 6), 0, 0, 1, 0, 0, 0, 1, 0)).transpose(1, 0, 2, 3),
    ),
    "blocks of a batch": (
        "1, 4, 4, 6",
        "int64[8] p = {0, 0, 1, 0, 0, 0, 1, 0}",
        (
            "t = Transpose <perm = [1, 0, 2, 3]> (x) q = Pad (t, p) d = SpaceToDepth <blocksize = 2> (q) "
            "y = Transpose <perm = [1, 0, 2, 3]> (d)"
        ),
        4,
        lambda x: _blocks(_padded(x.transpose(1, 0, 2, 3), 0, 0, 1, 0, 0, 0, 1, 0)).transpose(1, 0, 2, 3),
    ),
    "a product between other reshapes": (
        "2, 3, 4",
        "int64[2] a = {3, 8}, int64[3] b = {5, 2, 4}, float[5, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}",
        (
            "t = Transpose <perm = [1, 2, 0]> (x) r = Reshape (t, a) m = MatMul (k, r) s = Reshape (m, b) "
            "y = Transpose <perm = [2, 0, 1]> (s)"
        ),
        3,
        lambda x: (
            (np.arange(1, 16, dtype=np.float32).reshape(5, 3) @ x.transpose(1, 2, 0).reshape(3, 8))
            .reshape(5, 2, 4)
            .transpose(2, 0, 1)
        ),
    ),
    "a Gemm between other reshapes": (
        "2, 3, 4",
        "int64[2] a = {8, 3}, int64[3] b = {5, 4, 2}, float[5, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}",
        (
            "t = Transpose <perm = [0, 2, 1]> (x) r = Reshape (t, a) m = Gemm <transB = 1> (k, r) s = Reshape (m, b) "
            "y = Transpose <perm = [1, 0, 2]> (s)"
        ),
        3,
        lambda x: (
            (np.arange(1, 16, dtype=np.float32).reshape(5, 3) @ x.transpose(0, 2, 1).reshape(8, 3).T)
            .reshape(5, 4, 2)
            .transpose(1, 0, 2)
        ),
    ),
    "a difference with more axes": (
        "2, 3",
        "float[1, 1, 1] c = {-1}",
        "t = Mul (x, c) y = Add (t, x)",
        3,
        lambda x: np.zeros_like(x)[None],
    ),
    "a quotient with more axes": (
        "2, 3",
        "float[1, 1, 1] c = {-1}",
        "t = Pow (x, c) y = Mul (x, t)",
        3,
        lambda x: np.ones_like(x)[None],
    ),
    "parts that stand twice along another axis": (
        "2, 2, 3, 3",
        "",
        "s, t = Split <axis = 1> (x) y = Concat <axis = 0> (s, s, t, t)",
        4,
        lambda x: np.concatenate([x[:, :1], x[:, :1], x[:, 1:], x[:, 1:]]),
    ),
    "parts without their axis along the last one": (
        "2, 2, 2, 2",
        "int64[1] a = {2}",
        "s, t = Split <axis = 2> (x) u = Squeeze (s, a) v = Squeeze (t, a) y = Concat <axis = -1> (u, v)",
        3,
        lambda x: np.concatenate([x[:, :, 0], x[:, :, 1]], -1),
    ),
    "slopes of products by -1, behind Identities": (
        "2, 3, 3",
        "float[3] w = {1, 2, 3}, float minus = {-1}",
        "p = Relu (x) n = Mul (x, minus) r = Relu (n) s = Mul (r, minus) i = Identity (s) m = Mul (i, w) y = Add (p, m)",
        3,
        _leaky,
    ),
    "blocks of padded channels behind an Identity": (
        "1, 4, 4, 6",
        "int64[8] p = {1, 0, 0, 0, 0, 0, 0, 0}",
        (
            "t = Transpose <perm = [1, 0, 2, 3]> (x) q = Pad (t, p) i = Identity (q) d = SpaceToDepth <blocksize = 2> (i) "
            "y = Transpose <perm = [1, 0, 2, 3]> (d)"
        ),
        4,
        lambda x: _blocks(_padded(x.transpose(1, 0, 2, 3), 1, 0, 0, 0, 0, 0, 0, 0)).transpose(1, 0, 2, 3),
    ),
    "truth values without their axis along the last one": (
        "2, 2, 2, 2",
        "int64[1] a = {2}, float zero = {0}",
        (
            "c = Greater (x, zero) s, t = Split <axis = 2> (c) u = Squeeze (s, a) v = Squeeze (t, a) "
            "k = Concat <axis = -1> (u, v) y = Cast <to = 1> (k)"
        ),
        3,
        lambda x: np.concatenate([x[:, :, 0], x[:, :, 1]], -1) > 0,
    ),
    "a GELU of rounded numbers": (
        "3, 8",
        "float three = {3}, float d = {0.044}, float c = {0.8}, float one = {1}, float half = {0.5}",
        "p = Pow (x, three) q = Mul (p, d) s = Add (x, q) m = Mul (s, c) t = Tanh (m) a = Add (t, one) h = Mul (x, half) y = Mul (h, a)",
        2,
        lambda x: 0.5 * x * (1 + np.tanh(np.float32(0.8) * (x + np.float32(0.044) * x**3))),
    ),
    "a swish by rows": (
        "3, 3",
        "float[3] w = {1, 2, 3}, float one = {1}",
        "m = Mul (x, w) n = Neg (m) e = Exp (n) a = Add (e, one) y = Div (x, a)",
        2,
        lambda x: x / (1 + np.exp(-x * np.float32([1, 2, 3]))),
    ),
    "a swish by what is computed": (
        "3, 3",
        "",
        "f = ReduceMax (x) m = Mul (x, f) s = Sigmoid (m) y = Mul (x, s)",
        2,
        lambda x: x / (1 + np.exp(-x * x.max())),
    ),
    "a Pad before a Conv that pads": (
        "n, 1, h, w",
        "int64[8] p = {0, 0, 0, 2, 0, 0, 2, 2}, float[1, 1, 3, 1] k = {0, 1, 0}",
        'r = Neg (x) t = Pad (r, p) y = Conv <auto_pad = "SAME_UPPER"> (t, k)',
        4,
        lambda x: _padded(-x, 0, 0, 0, 2, 0, 0, 2, 2),
    ),
}
_SIZES = {"a, b, c": (2, 1, 3), "n, 1, h, w": (2, 1, 3, 4)}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_nearly_a_pattern(preset: type[omb.Preset], form: str) -> None:
    sizes, constants, nodes, rank, right = FORMS[form]
    kind = "int64" if "NonZero" in nodes else "float"
    made = ", ".join("mnopq"[:rank])
    held = f"<{constants}>" if constants else ""
    model = parsed(f"(float[{sizes}] x) => ({kind}[{made}] y) {held} {{ {nodes} }}")
    prepared = preset.prepare(model, fallback="full")
    for factor in (1, -2):
        x = np.float32(factor) * floats(*(_SIZES.get(sizes) or tuple(map(int, sizes.split(", ")))))
        expected = right(x)
        expected = expected.astype(np.float32) if expected.dtype == bool else expected
        np.testing.assert_allclose(prepared.run([x])[0], expected, rtol=1e-4, atol=1e-5, strict=True)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("int64", "m = Mul (x, x) y = Neg (m)"),
        ("int32", "p = Relu (x) n = Neg (x) m = Mul (n, w) y = Add (p, m)"),
        (
            "int64",
            "s, t = Split <axis = 1> (x) u = Squeeze <axes = [1]> (s) v = Squeeze <axes = [1]> (t) y = Concat <axis = -1> (u, v)",
        ),
    ],
)
def test_integers(ort_cpu: type[omb.Preset], openvino: type[omb.Preset], opset: int, kind: str, nodes: str) -> None:
    """Max takes no integers before opset 12; what is kept apart of floating point needs nothing."""
    if (opset < 14) == ("Relu" in nodes) or (opset > 12) == ("Squeeze" in nodes):
        pytest.skip("the operators have another form in that opset")
    text = f"({kind}[2, 2] x) => ({kind}[{'c' if 'Squeeze' in nodes else 'a, b'}] y) <{kind}[2] w = {{2, 3}}> {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> g {text}')
    x = np.array([[1, -2], [3, 4]], kind)
    results = [preset.prepare(model).run([x])[0].tolist() for preset in (ort_cpu, openvino)]
    assert results[0] == results[1]
