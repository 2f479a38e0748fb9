# SPDX-License-Identifier: Apache-2.0
"""Valid models to mutate: ONNX's own cases, its light models, random graphs, and exported models where there are some."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, helper

from backend_test.search.cases import cases
from backend_test.search.graphs import random_graph
from onnx_multi_backend.conformance.cases import model_of

EXPORTED = Path("build") / "exported"
#: A model larger than this is not mutated: it would take too much of the time.
_LARGEST = 3_000_000
#: Elements of an input that is made up.
_MOST = 2_000_000


class Seed(NamedTuple):
    """A valid model, and inputs that it is known to take, by name."""

    name: str
    model: ModelProto
    feeds: Mapping[str, Any]


@functools.cache
def exported() -> list[Path]:
    return sorted(p for p in EXPORTED.glob("**/*.onnx") if p.stat().st_size < _LARGEST)


def draw_seed(rng: random.Random, only: str = "") -> Seed:
    """One of them; with a word, one of ONNX's cases that have it in their name."""
    whole, light = cases()
    share = rng.random()
    if only:
        share, whole = 1.0, [case for case in whole if only in case.name]
    if share < 0.02 and light:
        case = rng.choice(light)
        return Seed(case.name, model_of(case), {})
    if share < 0.05 and exported():
        path = rng.choice(exported())
        return Seed(path.name, onnx.load(path), {})
    if share < 0.45:
        made = random_graph(rng)
        return Seed("random", made.model, made.feeds[0])
    case = rng.choice(whole)
    model = model_of(case)
    assert case.data_sets is not None
    inputs = case.data_sets[0][0]
    names = [i.name for i in model.graph.input]
    return Seed(case.name, model, dict(zip(names, inputs, strict=False)))


def feeds_for(model: ModelProto, seed: Seed, rng: random.Random) -> dict[str, Any] | None:
    """Inputs for a mutated model: the seed's where they are known, made up where they are not; None where none can be."""
    feeds: dict[str, Any] = {}
    initializers = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        if value.name in feeds or (value.name in initializers and value.name not in seed.feeds):
            continue
        known = seed.feeds.get(value.name)
        if known is not None and rng.random() < 0.95:
            feeds[value.name] = known
            continue
        made = _made_up(value, rng)
        if made is None:
            return None
        feeds[value.name] = made
    return feeds


def _made_up(value: onnx.ValueInfoProto, rng: random.Random) -> np.ndarray | None:
    held = value.type.tensor_type
    if held.elem_type not in helper.get_all_tensor_dtypes() or not value.type.HasField("tensor_type"):
        return None
    sizes = [d.dim_value if d.HasField("dim_value") else rng.choice((1, 2, 3)) for d in held.shape.dim]
    if any(s < 0 or s > _MOST for s in sizes) or float(np.prod(sizes, dtype=float)) > _MOST:
        return None
    if held.elem_type == onnx.TensorProto.STRING:
        return np.full(sizes, "a", object)
    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(held.elem_type))
    except KeyError:
        return None
    return np.asarray(np.random.default_rng(rng.randrange(1 << 32)).integers(0, 4, sizes)).astype(dtype)
