# SPDX-License-Identifier: Apache-2.0
"""Recipes: operators that take indices, sort or select."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Dims, NoFitError, Value, shape_of
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe


def indices(d: Draft, dims: Dims, limits: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Indices below a limit in each run, some of them counted from the end."""
    made = []
    negative = d.since >= 11 and d.b.chance(0.4)
    for run in (0, 1):
        shape = shape_of(dims, run)
        size = int(np.prod(shape, dtype=int))
        low = -limits[run] if negative else 0
        made.append(np.array([d.rng.randrange(low, limits[run]) for _ in range(size)], np.int64).reshape(shape))
    return made[0], made[1]


@recipe("Gather")
def gather(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    d.attr("axis", axis, 1 if axis else 0.5)
    one, two = indices(d, d.b.shape((0, 1, 1, 2)), first.dims[axis])
    d.given(one, two, kind=d.kind("Tind"))
    return d.done()


@recipe("GatherElements")
def gather_elements(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    d.attr("axis", axis, 1 if axis else 0.5)
    dims = list(first.dims)
    dims[axis] = d.b.dim()
    one, two = indices(d, tuple(dims), first.dims[axis])
    d.given(one, two, kind=d.kind("Tind"))
    return d.done()


@recipe("GatherND")
def gather_nd(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    batch = d.rng.randrange(len(first.dims)) if d.since >= 12 and d.b.chance(0.3) else 0
    d.attr("batch_dims", batch, 1 if batch else 0.3)
    depth = d.rng.randint(1, len(first.dims) - batch)
    lead = (*first.dims[:batch], *d.b.shape((0, 1)))
    columns = [indices(d, lead, first.dims[batch + i]) for i in range(depth)]
    d.given(np.stack([c[0] for c in columns], -1), np.stack([c[1] for c in columns], -1))
    return d.done()


@recipe("ScatterElements", "Scatter")
def scatter_elements(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    d.attr("axis", axis, 1 if axis else 0.5)
    reductions = ["none", *(["add", "mul"] if d.since >= 16 else []), *(["max", "min"] if d.since >= 18 else [])]
    reduction = d.attr("reduction", d.rng.choice(reductions), 0.6)
    one, two = (
        _apart(d, shape_of(first.dims, run), axis, repeats=reduction in ("add", "max", "min")) for run in (0, 1)
    )
    d.given(one, two, kind=d.kind("Tind"))
    d.x(dims=tuple(zip(one.shape, two.shape, strict=True)))
    return d.done()


def _apart(d: Draft, shape: tuple[int, ...], axis: int, repeats: bool) -> np.ndarray:
    """Indices along an axis, each once unless they may repeat."""
    count = d.rng.randint(1, shape[axis])
    cut = list(shape)
    cut[axis] = count
    made = np.zeros(cut, np.int64)
    for place in np.ndindex(*(s for i, s in enumerate(cut) if i != axis % len(cut))):
        chosen = d.rng.choices(range(shape[axis]), k=count) if repeats else d.rng.sample(range(shape[axis]), count)
        where = list(place)
        where.insert(axis % len(cut), slice(None))  # type: ignore[arg-type]
        made[tuple(where)] = chosen
    return made


@recipe("ScatterND")
def scatter_nd(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    depth = d.rng.randint(1, len(first.dims))
    reductions = ["none", *(["add", "mul"] if d.since >= 16 else []), *(["max", "min"] if d.since >= 18 else [])]
    d.attr("reduction", d.rng.choice(reductions), 0.6)
    made = []
    count = d.rng.randint(1, 2)
    for run in (0, 1):
        shape = shape_of(first.dims, run)[:depth]
        places = list(np.ndindex(*shape))
        made.append(np.array(d.rng.sample(places, min(count, len(places))), np.int64).reshape(-1, depth))
    d.given(*made)
    d.x(dims=((len(made[0]), len(made[1])), *first.dims[depth:]))
    return d.done()


@recipe("OneHot")
def one_hot(d: Draft) -> list[Value]:
    depth = d.rng.randint(1, 5)
    dims = d.b.shape((0, 1, 2))
    kind = d.kind("T1", [k for k in d.allowed("T1") if k not in v.NARROW])
    low = -depth if kind not in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64) else 0
    made = [
        np.array([d.rng.randint(low, depth) for _ in range(int(np.prod(s, dtype=int)))]).reshape(s)
        for s in (shape_of(dims, 0), shape_of(dims, 1))
    ]
    if d.since < 11:
        made = [np.abs(m) % depth for m in made]
    d.given(made[0], made[1], kind=kind)
    number = d.kind("T2", [k for k in d.allowed("T2") if k not in v.NARROW])
    d.given(depth if d.b.chance(0.5) else [depth], kind=number)
    third = d.kind("T3")
    d.given(v.numbers(d.rng, third, 2), kind=third)
    d.attr("axis", d.rng.randint(-1, len(dims)), 0.5)
    return d.done()


@recipe("NonZero")
def non_zero(d: Draft) -> list[Value]:
    d.x(ranks=(1, 2, 3))
    return d.done()


@recipe("Compress")
def compress(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    if d.b.chance(0.7):
        axis = d.axis(len(first.dims))
        d.attr("axis", axis)
        length = min(first.dims[axis])
    else:
        length = min(int(np.prod(shape_of(first.dims, run))) for run in (0, 1))
    length = d.rng.randint(1, length)
    d.given([d.b.chance(0.5) for _ in range(length)], kind=TensorProto.BOOL)
    return d.done()


@recipe("Unique")
def unique(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1, profile="ordinary")
    assert first.dims is not None
    d.attr("axis", d.axis(len(first.dims)), 0.6)
    d.attr("sorted", d.rng.randrange(2), 0.5)
    return d.done(d.rng.choice((1, 4)))


@recipe("TopK")
def top_k(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3), least=1)
    assert first.dims is not None
    axis = d.axis(len(first.dims))
    d.attr("axis", axis, 1 if axis not in (-1, len(first.dims) - 1) else 0.5)
    d.attr("largest", d.rng.randrange(2), 0.5)
    count = d.rng.randint(1, min(first.dims[axis]))
    if d.since < 10:
        d.attr("k", count)
    else:
        d.given([count])
    return d.done(2)


@recipe("NonMaxSuppression")
def non_max_suppression(d: Draft) -> list[Value]:
    boxes, classes = d.rng.randint(1, 6), d.rng.randint(1, 2)
    corners = np.array([[d.rng.uniform(0, 5) for _ in range(4)] for _ in range(boxes)], np.float32)
    corners[:, 2:] = corners[:, :2] + np.abs(corners[:, 2:]) / 2 + 0.1
    if d.attr("center_point_box", d.rng.randrange(2), 0.3):
        corners[:, 2:] = np.abs(corners[:, 2:])
    scores = np.array(d.rng.sample(range(100), boxes * classes), np.float32).reshape(1, classes, boxes) / 100
    d.given(corners[None], kind=TensorProto.FLOAT)
    d.given(scores, kind=TensorProto.FLOAT)
    d.given(d.rng.randint(1, 4) if d.b.chance(0.8) else [2])
    if d.b.chance(0.7):
        d.given(np.float32(d.rng.choice((0.0, 0.3, 0.5))), kind=TensorProto.FLOAT)
        if d.b.chance(0.6):
            d.given(np.float32(d.rng.choice((0.0, 0.35))), kind=TensorProto.FLOAT)
    return d.done()


@recipe("TensorScatter")
def tensor_scatter(d: Draft) -> list[Value]:
    batch, sequence, width = d.rng.randint(1, 2), d.rng.randint(2, 5), d.rng.randint(1, 3)
    kind = d.kind("T")
    if kind in v.NARROW:
        raise NoFitError("nothing new")
    d.x(dims=((batch, batch), (sequence, sequence), (width, width)))
    length = d.rng.randint(1, sequence)
    d.x(dims=((batch, batch), (length, length), (width, width)))
    if d.b.chance(0.7):
        d.given([d.rng.randint(0, sequence - length) for _ in range(batch)])
    d.attr("mode", d.rng.choice(("linear", "circular")), 0.5)
    d.attr("axis", d.rng.choice((-2, 1)), 0.5)
    return d.done()
