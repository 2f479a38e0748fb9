# SPDX-License-Identifier: Apache-2.0
"""Mutations of valid models: each changes one thing, drawn with a generator of its own, so that any of them can be left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from onnx import ModelProto

from backend_test.search.mutations import model, nodes, tensors, values, whole
from backend_test.search.mutations.whole import change_bytes

#: Changes a model in place and says how; an empty text where there is nothing to change.
Mutation = Callable[[ModelProto, random.Random], str]

MUTATIONS: tuple[Mutation, ...] = (
    *nodes.MUTATIONS,
    *nodes.MUTATIONS,  # these reach an engine most often
    *tensors.MUTATIONS,
    *values.MUTATIONS,
    *model.MUTATIONS,
    *whole.MUTATIONS,
)

__all__ = ["MUTATIONS", "apply", "change_bytes", "draw"]


def draw(rng: random.Random) -> list[tuple[Mutation, int]]:
    """One to four mutations, each with the seed of its own generator."""
    return [(rng.choice(MUTATIONS), rng.randrange(1 << 32)) for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4)))]


def apply(proto: ModelProto, mutations: Sequence[tuple[Mutation, int]]) -> tuple[ModelProto, list[str]]:
    """A copy of a model with mutations, and what they did."""
    changed = ModelProto()
    changed.CopyFrom(proto)
    done = []
    for mutation, seed in mutations:
        told = mutation(changed, random.Random(seed))
        if told:
            done.append(told)
    return changed, done
