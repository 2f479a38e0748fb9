# SPDX-License-Identifier: Apache-2.0
"""Recipes: convolutions, pooling, products of matrices, quantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Dim, Dims, NoFitError, Value, static
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe


def image(d: Draft, channels: int, spatial: int) -> Dims:
    """Batch, channels, and spatial dimensions that a kernel of 3 fits into."""
    batch = d.rng.choice([x for x in d.b.palette if min(x)] or [(1, 1)])
    sizes: list[Dim] = [(4, 4), (5, 5), (6, 6), *([(4, 6), (5, 7)] if d.b.dynamic else [])]
    return (batch, (channels, channels), *(d.rng.choice(sizes) for _ in range(spatial)))


def window(d: Draft, kernel: Sequence[int], *, dilations: bool = True) -> None:
    """Strides, dilations and padding of a kernel."""
    rank = len(kernel)
    d.attr("strides", [d.rng.choice((1, 1, 2, 3)) for _ in kernel], 0.5)
    if dilations:
        d.attr("dilations", [d.rng.choice((1, 1, 2)) if k > 1 and k < 3 else 1 for k in kernel], 0.3)
    padding = d.rng.choice(("none", "none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if padding == "pads":
        d.attr("pads", [d.rng.randrange(k) for k in kernel] + [d.rng.randrange(k) for k in kernel])
    elif padding != "none":
        if "SAME" in padding:
            d.attributes.pop("dilations", None)
        d.attr("auto_pad", padding)
    assert rank


def kernel_of(d: Draft, spatial: int) -> list[int]:
    return [d.rng.choice((1, 2, 3, 3)) for _ in range(spatial)]


@recipe("Conv", "ConvInteger")
def conv(d: Draft) -> list[Value]:
    spatial, group = d.rng.choice((1, 2, 2, 2, 3)), d.rng.choice((1, 1, 2))
    channels, filters = group * d.rng.randint(1, 2), group * d.rng.randint(1, 3)
    kernel = kernel_of(d, spatial)
    var, second = ("T", "T") if d.op_type == "Conv" else ("T1", "T2")
    d.x(var, dims=image(d, channels, spatial))
    d.x(second, dims=static(filters, channels // group, *kernel))
    d.attr("group", group, 1 if group > 1 else 0.3)
    d.attr("kernel_shape", kernel, 0.6)
    window(d, kernel)
    if d.op_type == "Conv":
        if d.b.chance(0.5):
            d.x("T", dims=static(filters))
    elif d.b.chance(0.6):
        d.x("T1", dims=(), reuse=False)
        if d.b.chance(0.5):
            d.x("T2", dims=(), reuse=False)
    return d.done()


@recipe("ConvTranspose")
def conv_transpose(d: Draft) -> list[Value]:
    spatial, group = d.rng.choice((1, 2, 2, 3)), d.rng.choice((1, 1, 2))
    channels, filters = group * d.rng.randint(1, 2), d.rng.randint(1, 2)
    kernel = kernel_of(d, spatial)
    d.x("T", dims=image(d, channels, spatial))
    d.x("T", dims=static(channels, filters, *kernel))
    d.attr("group", group, 1 if group > 1 else 0.3)
    d.attr("kernel_shape", kernel, 0.6)
    window(d, kernel)
    strides = d.attributes.get("strides", [1] * spatial)
    d.attr("output_padding", [d.rng.randrange(s) for s in strides], 0.3)
    if d.b.chance(0.4):
        d.x("T", dims=static(filters * group))
    return d.done()


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(d: Draft) -> list[Value]:
    spatial = d.rng.choice((1, 2, 2, 2, 3))
    kernel = kernel_of(d, spatial)
    d.x("T", dims=image(d, d.rng.randint(1, 3), spatial))
    d.attr("kernel_shape", kernel)
    window(d, kernel)
    d.attr("ceil_mode", d.rng.randrange(2), 0.4)
    d.attr("count_include_pad", d.rng.randrange(2), 0.4)
    d.attr("p", d.rng.choice((1, 2, 3)), 0.5)
    if d.op_type == "MaxPool" and d.since >= 8 and d.b.chance(0.3):
        d.attr("storage_order", d.rng.randrange(2), 0.4)
        return d.done(2)
    return d.done()


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draft) -> list[Value]:
    d.x("T", ranks=(3, 4), least=1)
    d.attr("p", d.rng.choice((1, 2, 3)), 0.5)
    return d.done()


@recipe("MaxUnpool")
def max_unpool(d: Draft) -> list[Value]:
    values = np.array([d.rng.uniform(-2, 2) for _ in range(4)], np.float32).reshape(1, 1, 2, 2)
    d.given(values, kind=d.kind("T1"))
    d.given(np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2))
    d.attr("kernel_shape", [2, 2])
    d.attr("strides", [2, 2])
    if d.b.chance(0.4):
        d.given([1, 1, 5, 5])
    return d.done()


@recipe("MatMul", "MatMulInteger")
def mat_mul(d: Draft) -> list[Value]:
    var, second = ("T", "T") if d.op_type == "MatMul" else ("T1", "T2")
    first = d.x(var, ranks=(1, 2, 2, 3, 4))
    assert first.dims is not None
    inner = first.dims[-1]
    if d.b.chance(0.15):
        dims: Dims = (inner,)
    else:
        dims = (*d.broadcast_to(first.dims[:-2]), inner, d.b.dim())
    d.x(second, dims=dims)
    if d.op_type == "MatMulInteger" and d.b.chance(0.6):
        d.x("T1", dims=(), reuse=False)
        if d.b.chance(0.5):
            d.x("T2", dims=(), reuse=False)
    return d.done()


@recipe("Gemm")
def gemm(d: Draft) -> list[Value]:
    first = d.x("T", ranks=(2,))
    assert first.dims is not None
    across = d.attr("transA", d.rng.randrange(2), 0.5)
    turned = d.attr("transB", d.rng.randrange(2), 0.5)
    m, k = reversed(first.dims) if across else first.dims
    n = d.b.dim()
    d.x("T", dims=(n, k) if turned else (k, n))
    if d.b.chance(0.7) or d.since < 11:
        d.x("T", dims=d.broadcast_to((m, n)))
    d.attr("alpha", d.rng.choice((0.5, 1.0, 2.0)), 0.4)
    d.attr("beta", d.rng.choice((0.5, 1.0, 0.0)), 0.4)
    return d.done()


_EQUATIONS = ("ij,jk->ik", "ij->ji", "ij->i", "ij,ij->", "i,j->ij", "bij,bjk->bik", "ii->i", "ij,jk", "...i->...")


@recipe("Einsum")
def einsum(d: Draft) -> list[Value]:
    equation = d.rng.choice(_EQUATIONS)
    letters: dict[str, Dim] = {}
    for term in equation.split("->")[0].split(","):
        dims: list[Dim] = [d.b.dim(1), d.b.dim(1)] if "." in term else []
        dims += [letters.setdefault(c, d.b.dim(1)) for c in term if c.isalpha()]
        d.x("T", dims=tuple(dims))
    d.attr("equation", equation)
    return d.done()


@recipe("Det")
def det(d: Draft) -> list[Value]:
    n = d.rng.randint(1, 3)
    d.x("T", dims=(*d.b.shape((0, 1)), (n, n), (n, n)), reuse=False)
    return d.done()


def scales(d: Draft, count: int) -> np.ndarray:
    return np.array([d.rng.choice((0.05, 0.1, 0.25, 1.0)) for _ in range(count)], np.float32)


@recipe("QuantizeLinear", "DequantizeLinear")
def quantize(d: Draft) -> list[Value]:
    forward = d.op_type == "QuantizeLinear"
    source = "T1" if "T1" in d.by_variable else "T"
    first = d.x(source, ranks=(1, 2, 3, 4))
    assert first.dims is not None
    rank = len(first.dims)
    axis = d.axis(rank, negative_since=0)
    per_axis = d.since >= 13 and d.b.chance(0.5) and first.dims[axis][0] == first.dims[axis][1]
    shape: tuple[int, ...] = ()
    if per_axis:
        shape = (first.dims[axis][0],)
        d.attr("axis", axis)
    real = "T2" if "T2" in d.by_variable else ""
    kind = d.kind(real, [k for k in d.allowed(real) if k in v.FLOATS]) if real and d.since >= 19 else TensorProto.FLOAT
    if forward and d.since >= 19 and d.since < 23:
        kind = first.kind if first.kind in d.allowed("T1") and first.kind in v.FLOATS else TensorProto.FLOAT
    d.given(scales(d, int(np.prod(shape, dtype=int))).reshape(shape), kind=kind)
    if forward:
        target = "T3" if "T3" in d.by_variable else "T2"
        if d.b.chance(0.8):
            zero = d.kind(target)
            _zero_point(d, zero, shape)
    elif d.b.chance(0.6):
        _zero_point(d, first.kind, shape)
    return d.done()


def _zero_point(d: Draft, kind: int, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape, dtype=int))
    if kind in v.INTEGERS and kind != TensorProto.INT32:
        info = np.iinfo(v.np_dtype(kind))
        made = np.array([d.rng.randint(max(info.min, -10), min(info.max, 130)) for _ in range(size)])
    else:
        made = np.zeros(size)
    d.given(made.reshape(shape), kind=kind)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(d: Draft) -> list[Value]:
    d.x("T1", ranks=(1, 2, 3), least=1)
    return d.done(3)


@recipe("QLinearMatMul")
def q_linear_mat_mul(d: Draft) -> list[Value]:
    m, k, n = d.b.dim(1), d.b.dim(1), d.b.dim(1)
    real = d.kind("TS") if "TS" in d.by_variable else TensorProto.FLOAT
    for var, dims in (("T1", (m, k)), ("T2", (k, n))):
        first = d.x(var, dims=dims, profile="wide")
        d.given(scales(d, 1)[0], kind=real)
        _zero_point(d, first.kind, ())
    d.given(scales(d, 1)[0], kind=real)
    _zero_point(d, d.kind("T3"), ())
    return d.done()


@recipe("QLinearConv")
def q_linear_conv(d: Draft) -> list[Value]:
    channels, filters, kernel = d.rng.randint(1, 2), d.rng.randint(1, 3), kernel_of(d, 2)
    first = d.x("T1", dims=image(d, channels, 2), profile="wide")
    d.given(scales(d, 1)[0], kind=TensorProto.FLOAT)
    _zero_point(d, first.kind, ())
    second = d.x("T2", dims=static(filters, channels, *kernel), profile="wide")
    shape = (filters,) if d.b.chance(0.4) else ()
    d.given(scales(d, filters if shape else 1).reshape(shape), kind=TensorProto.FLOAT)
    if shape:
        d.given(np.zeros(shape), kind=second.kind)
    else:
        _zero_point(d, second.kind, ())
    d.given(scales(d, 1)[0], kind=TensorProto.FLOAT)
    _zero_point(d, d.kind("T3"), ())
    if d.b.chance(0.4):
        d.given([d.rng.randint(-50, 50) for _ in range(filters)], kind=TensorProto.INT32)
    window(d, kernel)
    if not d.schema:
        raise NoFitError
    return d.done()
