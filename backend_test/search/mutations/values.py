# SPDX-License-Identifier: Apache-2.0
"""Mutations of declared values: inputs, outputs and what is said of those between."""

from __future__ import annotations

import random

from onnx import ModelProto, ValueInfoProto

from backend_test.search.mutations.walk import extreme, graphs, names, pick


def _values(model: ModelProto) -> list[ValueInfoProto]:
    return [v for g in graphs(model) for part in (g.input, g.output, g.value_info) for v in part]


def kind(model: ModelProto, rng: random.Random) -> str:
    """A value gets another element type."""
    value = pick(rng, (v for v in _values(model) if v.type.HasField("tensor_type")))
    if value is None:
        return ""
    before = value.type.tensor_type.elem_type
    value.type.tensor_type.elem_type = rng.choice((*range(29), 1000))
    return f"{value.name!r} type {before} -> {value.type.tensor_type.elem_type}"


def shape(model: ModelProto, rng: random.Random) -> str:
    """A value gets other dimensions, or none."""
    value = pick(rng, (v for v in _values(model) if v.type.HasField("tensor_type")))
    if value is None:
        return ""
    held = value.type.tensor_type
    how = rng.randrange(5)
    if how == 0:
        held.ClearField("shape")
        return f"{value.name!r} without a shape"
    if how == 1 or not held.shape.dim:
        held.shape.dim.add(dim_value=extreme(rng))
    elif how == 2:
        del held.shape.dim[rng.randrange(len(held.shape.dim))]
    elif how == 3:
        held.shape.dim[rng.randrange(len(held.shape.dim))].dim_param = rng.choice(("n", "", "n+1", "\x00", "n" * 999))
    else:
        held.shape.dim[rng.randrange(len(held.shape.dim))].dim_value = extreme(rng)
    return f"{value.name!r} shape {[d.dim_param or d.dim_value for d in held.shape.dim]}"[:200]


def what(model: ModelProto, rng: random.Random) -> str:
    """A value becomes a sequence, an optional, a map, sparse, or of no type."""
    value = pick(rng, _values(model))
    if value is None:
        return ""
    held = value.type.SerializeToString()
    inner = type(value.type).FromString(held)
    how = rng.choice(("sequence", "optional", "map", "sparse", "none", "deep"))
    value.type.Clear()
    if how == "sequence":
        value.type.sequence_type.elem_type.CopyFrom(inner)
    elif how == "optional":
        value.type.optional_type.elem_type.CopyFrom(inner)
    elif how == "map":
        value.type.map_type.key_type = 7
        value.type.map_type.value_type.CopyFrom(inner)
    elif how == "sparse":
        value.type.sparse_tensor_type.elem_type = 1
    elif how == "deep":
        place = value.type
        for _ in range(40):
            place = place.sequence_type.elem_type
        place.CopyFrom(inner)
    return f"{value.name!r} made {how}"


def name(model: ModelProto, rng: random.Random) -> str:
    """An input or output is renamed, comes twice, goes, or is said to be what another is."""
    graph = rng.choice(graphs(model))
    part = graph.input if rng.random() < 0.5 else graph.output
    if not part:
        return ""
    value = rng.choice(list(part))
    before = value.name
    how = rng.randrange(4)
    if how == 0:
        part.add().CopyFrom(value)
        return f"{before!r} twice"
    if how == 1:
        part.remove(value)
        return f"{before!r} undeclared"
    value.name = rng.choice(["", "nothing", "a\x00b", *names(model)])
    return f"{before!r} renamed {value.name!r}"


def inside(model: ModelProto, rng: random.Random) -> str:
    """Something is said of a value between that does not hold."""
    found = list(names(model))
    if not found:
        return ""
    made = model.graph.value_info.add(name=rng.choice(found))
    made.type.tensor_type.elem_type = rng.choice((1, 7, 9, 10, 11, 6))
    for _ in range(rng.randrange(4)):
        made.type.tensor_type.shape.dim.add(dim_value=rng.choice((0, 1, 2, 3, 1000, 2**40)))
    return f"{made.name!r} said to be {made.type.tensor_type.elem_type}"


MUTATIONS = (kind, shape, shape, what, name, inside)
