# SPDX-License-Identifier: Apache-2.0
"""Recipes: operators that change shapes, and that pick and place elements."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, helper

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Dims, NoFitError, Value
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe


def rank_of(value: Value) -> int:
    assert value.dims is not None
    return len(value.dims)


@recipe("Reshape")
def reshape(d: Draft) -> list[Value]:
    one, two = d.shapes(d.x())
    rank = len(one)
    choices: list[list[int]] = [[-1]]
    if rank:
        choices += [[0] * rank, [*[0] * (rank - 1), -1], [*one[1:], one[0]] if one == two else [-1]]
        if rank > 1:
            choices += [[0, -1], [-1, *([1] * d.rng.randrange(2)), one[-1]] if one[-1] == two[-1] else [0, -1]]
        if math.prod(one) > 1 and one == two:
            choices.append([*one[:-1], 1, one[-1]])
    else:
        choices += [[], [1], [1, 1]]
    target = d.rng.choice(choices)
    if 0 in (math.prod(one), math.prod(two)) and -1 in target and 0 in target[:-1]:
        target = [-1] if rank else target
    d.given(target)
    if 0 not in target:
        d.attr("allowzero", 1, 0.2)
    return d.done()


@recipe("Squeeze")
def squeeze(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4), fits=lambda dims: (1, 1) in dims)
    assert first.dims is not None
    ones = [i for i, dim in enumerate(first.dims) if dim == (1, 1)]
    if d.b.chance(0.7):
        axes = d.rng.sample(ones, d.rng.randint(1, len(ones)))
        axes = [a - rank_of(first) if d.since >= 11 and d.b.chance(0.3) else a for a in axes]
        if "axes" in d.schema.attributes:
            d.attr("axes", axes)
        else:
            d.given(axes)
    elif any(1 in dim and dim != (1, 1) for dim in first.dims):
        raise NoFitError("the rank would differ between the runs")
    return d.done()


@recipe("Unsqueeze")
def unsqueeze(d: Draft) -> list[Value]:
    rank = rank_of(d.x(ranks=(0, 1, 2, 3)))
    count = d.rng.choice((1, 1, 2))
    axes = d.rng.sample(range(rank + count), count)
    axes = [a - rank - count if d.since >= 11 and d.b.chance(0.3) else a for a in axes]
    if "axes" in d.schema.attributes:
        d.attr("axes", axes)
    else:
        d.given(axes)
    return d.done()


@recipe("Flatten")
def flatten(d: Draft) -> list[Value]:
    rank = rank_of(d.x(ranks=(1, 2, 3, 4)))
    d.attr("axis", d.axis(rank) if d.b.chance(0.8) else rank, 0.8)
    return d.done()


@recipe("Transpose")
def transpose(d: Draft) -> list[Value]:
    rank = rank_of(d.x())
    if rank:
        d.attr("perm", d.rng.sample(range(rank), rank), 0.8)
    return d.done()


@recipe("Expand")
def expand(d: Draft) -> list[Value]:
    first = d.x()
    assert first.dims is not None
    target: Dims = tuple(d.b.dim() if dim == (1, 1) and d.b.chance(0.6) else dim for dim in first.dims)
    if d.b.chance(0.4):
        target = (d.b.dim(1), *target)
    if d.b.chance(0.3):
        target = tuple((1, 1) if dim != (0, 0) and d.b.chance(0.4) else dim for dim in target)
    d.given([one for one, _ in target], [two for _, two in target])
    return d.done()


@recipe("Tile")
def tile(d: Draft) -> list[Value]:
    rank = rank_of(d.x(ranks=(1, 2, 3, 4)))
    one = [d.rng.choice((1, 1, 2, 3, 0) if d.b.chance(0.1) else (1, 2, 3)) for _ in range(rank)]
    two = [d.rng.choice((1, 2)) for _ in range(rank)] if d.b.dynamic and d.b.chance(0.4) else one
    d.given(one, two)
    return d.done()


@recipe("Concat")
def concat(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4))
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    for _ in range(d.rng.choice((0, 1, 1, 2))):
        dims = list(first.dims)
        if d.b.chance(0.5):
            dims[axis] = d.b.dim()
        d.x(dims=tuple(dims))
    d.rng.shuffle(d.inputs)
    d.attr("axis", axis)
    return d.done()


@recipe("Split")
def split(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    one, two = first.dims[axis]
    d.attr("axis", axis, 1 if axis else 0.5)
    outputs = d.rng.choice((1, 2, 2, 3))
    if d.since >= 18 and d.b.chance(0.4):
        d.attr("num_outputs", outputs)
        if min(one, two) < outputs:
            raise NoFitError("too short")
        return d.done(outputs)
    if one == two and d.b.chance(0.7):
        cuts = sorted(d.rng.choices(range(one + 1), k=outputs - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, one], strict=True)]
        if "split" in d.schema.attributes:
            d.attr("split", parts)
        else:
            d.given(parts)
    elif one % outputs or two % outputs or d.since >= 18:
        raise NoFitError("no equal parts")
    return d.done(outputs)


@recipe("Slice")
def slice_(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4))
    assert first.dims is not None
    axes = [a % len(first.dims) for a in d.axes(len(first.dims), 2)]
    steps = [d.rng.choice((1, 1, 1, 2, -1, -2)) if d.since >= 10 else 1 for _ in axes]
    starts, ends = [], []
    for axis, step in zip(axes, steps, strict=True):
        size = max(first.dims[axis])
        low, high = sorted((d.rng.randint(-size, size), d.rng.randint(-size, size)))
        far = d.rng.choice((2**31 - 1, 2**63 - 1, 1000)) if d.b.chance(0.3) else high
        starts.append(low if step > 0 else d.rng.choice((-1, high, size - 1)))
        ends.append(far if step > 0 else d.rng.choice((low, -size - 1, -(2**31), -(2**63) + 1)))
    if d.since < 10:
        d.attr("starts", starts)
        d.attr("ends", ends)
        d.attr("axes", axes)
        return d.done()
    kind = d.kind("Tind")
    if kind == TensorProto.INT32:
        starts, ends = ([max(-(2**31), min(n, 2**31 - 1)) for n in part] for part in (starts, ends))
    d.given(starts, kind=kind)
    d.given(ends, kind=kind)
    if axes != list(range(len(axes))) or d.b.chance(0.7) or any(s != 1 for s in steps):
        d.given(axes, kind=kind)
        if any(s != 1 for s in steps) or d.b.chance(0.3):
            d.given(steps, kind=kind)
    return d.done()


@recipe("Shape", "Size")
def shape(d: Draft) -> list[Value]:
    rank = rank_of(d.x())
    if rank:
        d.attr("start", d.rng.randint(-rank, rank), 0.3)
        d.attr("end", d.rng.randint(-rank, rank), 0.3)
    return d.done()


@recipe("Pad")
def pad(d: Draft) -> list[Value]:
    mode = d.rng.choice(("constant", "constant", "reflect", "edge", *(("wrap",) if d.since >= 19 else ())))
    first = d.x(ranks=(1, 2, 3, 4), least=0 if mode == "constant" else 2)
    assert first.dims is not None
    rank, kind = len(first.dims), first.kind
    d.attr("mode", mode, 1 if mode != "constant" else 0.4)
    axes = [a % rank for a in d.axes(rank)] if d.since >= 18 and d.b.chance(0.4) else list(range(rank))
    most = [2 if mode in ("constant", "edge") else min(first.dims[a]) - 1 for a in axes]
    low = [-1 if mode == "constant" and d.b.chance(0.15) and min(first.dims[a]) > 1 else 0 for a in axes]
    pads = [d.rng.randint(lo, max(hi, 0)) for lo, hi in zip(low, most, strict=True)]
    pads += [d.rng.randint(0, max(hi, 0)) for hi in most]
    if d.since < 11:
        d.attr("pads", pads)
        d.attr("value", d.rng.choice((0.0, 1.5)), 0.5)
        return d.done()
    d.given(pads)
    if d.b.chance(0.5):
        d.given(v.numbers(d.rng, kind, 1)[0], kind=kind)
    else:
        d.skip()
    if axes != list(range(rank)):
        d.given([a - rank if d.b.chance(0.3) else a for a in axes])
    return d.done()


@recipe("DepthToSpace", "SpaceToDepth")
def depth_to_space(d: Draft) -> list[Value]:
    n, h, w = d.b.dim(1), d.b.dim(1), d.b.dim(1)
    if d.op_type == "DepthToSpace":
        d.x(dims=(n, (8, 8), h, w))
        d.attr("mode", d.rng.choice(("DCR", "CRD")), 0.6)
    else:
        d.x(dims=(n, (2, 2), (h[0] * 2, h[1] * 2), (w[0] * 2, w[1] * 2)))
    d.attr("blocksize", 2)
    return d.done()


@recipe("CenterCropPad")
def center_crop_pad(d: Draft) -> list[Value]:
    rank = rank_of(d.x("T", ranks=(1, 2, 3), least=1))
    axes = d.axes(rank)
    if d.b.chance(0.7):
        d.attr("axes", axes)
    sizes = [d.rng.randint(1, 6) for _ in (axes if "axes" in d.attributes else range(rank))]
    d.given(sizes, kind=d.kind("Tind"))
    return d.done()


@recipe("Trilu")
def trilu(d: Draft) -> list[Value]:
    d.x(ranks=(2, 3))
    if d.b.chance(0.6):
        d.given(d.rng.randint(-3, 3))
    d.attr("upper", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("EyeLike")
def eye_like(d: Draft) -> list[Value]:
    d.x("T1", ranks=(2,), least=1)
    d.attr("k", d.rng.randint(-2, 2), 0.5)
    d.attr("dtype", d.kind("T2", [k for k in d.allowed("T2") if k != TensorProto.STRING]), 0.5)
    return d.done()


@recipe("ReverseSequence")
def reverse_sequence(d: Draft) -> list[Value]:
    first = d.x(ranks=(2, 3, 4), least=1)
    assert first.dims is not None
    time = d.rng.randrange(2)
    d.attr("time_axis", time, 1 if time else 0.5)
    d.attr("batch_axis", 1 - time, 1 if time else 0.5)
    if not time:
        d.attr("batch_axis", 1)
    (one, two), (long, longer) = first.dims[1 - time], first.dims[time]
    d.given([d.rng.randint(1, long) for _ in range(one)], [d.rng.randint(1, longer) for _ in range(two)])
    return d.done()


@recipe("Range")
def range_(d: Draft) -> list[Value]:
    kind = d.kind("T")
    step = d.rng.choice((1, 2, -1, 3))
    start = d.rng.randint(-3, 3) if kind not in v.NARROW else 0
    limit = start + step * d.rng.choice((0, 1, 3, 5, -1))
    again = start + step * d.rng.choice((0, 2, 4)) if d.b.dynamic else limit
    d.given(start, kind=kind)
    d.given(limit, again, kind=kind)
    d.given(step, kind=kind)
    return d.done()


@recipe("ConstantOfShape")
def constant_of_shape(d: Draft) -> list[Value]:
    dims = d.b.shape()
    d.given([one for one, _ in dims], [two for _, two in dims])
    if d.b.chance(0.8):
        kind = d.kind("T2")
        number = v.numbers(d.rng, kind, 1)
        d.attr("value", v.to_tensor(number, ""))
    return d.done()


@recipe("Constant")
def constant(d: Draft) -> list[Value]:
    made = v.numbers(d.rng, TensorProto.FLOAT, d.rng.randint(1, 3))
    choice = d.rng.randrange(3)
    if choice == 0 or d.since < 12:
        d.attr("value", helper.make_tensor("", TensorProto.FLOAT, made.shape, made))
    elif choice == 1:
        d.attr("value_floats", made.tolist())
    else:
        d.attr("value_ints", np.arange(3).tolist())
    return d.done()
