# SPDX-License-Identifier: Apache-2.0
"""Whether the bare engine, right with some inputs, is wrong with others: then a preset that refuses the model is not worse than it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from backend_test.search import engines, evaluator
from backend_test.search.answers import FATAL, RESULT, Answer
from backend_test.search.graphs.values import numbers, onnx_kind
from backend_test.search.isolation import Stages
from backend_test.search.judge import agree
from backend_test.search.parts import inner_values
from backend_test.search.sensitivity import sensitive
from backend_test.search.unspecified import unspecified

Ask = Callable[..., Answer]

#: How often the inputs are drawn anew.
_TRIES = 24


def wrong_with_others(
    preset: str, model: ModelProto, feeds: Sequence[dict[str, Any]], answers: Mapping[str, Answer], stages: Stages
) -> bool:
    """Whether the bare engine is wrong, or dies, with some inputs of the same shapes.

    In every second try all runs have the shapes of the first: an engine that plans anew for each shape may keep what the run
    before decided where the shapes are the same.

    Who has agreed with it on the given ones is believed: all of them have to agree with each other on the new ones.

    Parameters
    ----------
    feeds : sequence of dict
        Of the runs A and B.
    answers : mapping of str to Answer
        Of the bare engine and the references to `feeds`.
    """
    right = answers["bare"].runs
    asked: dict[str, Ask] = {"unoptimized": engines.ort_unoptimized, "reference": engines.reference}
    witnesses = {n: ask for n, ask in asked.items() if _same(answers[n].runs, right) and len(right) == len(feeds)}
    if evaluator.errs(model):
        witnesses.pop("reference", None)
    data = model.SerializeToString()
    rng = random.Random(0)

    def say(name: str, engine: Ask, fed: Sequence[dict[str, Any]]) -> Answer:
        return stages.run(name, lambda note: engine(data, fed, note))

    for count in range(_TRIES):
        shaped = [feeds[0]] * len(feeds) if count % 2 else feeds
        drawn = [{name: _drawn(rng, array) for name, array in fed.items()} for fed in shaped]
        said = [say(f"others {count} {name}", engine, drawn) for name, engine in witnesses.items()]
        runs = [answer.runs for answer in said if answer.kind == RESULT]
        if not runs or not all(_same(one, runs[0]) for one in runs) or not _specified(model, drawn):
            continue
        bare = say(f"others {count} bare", engines.bare_of(preset), drawn)
        if bare.kind in FATAL or (
            bare.kind == RESULT and not _same(bare.runs, runs[0]) and not sensitive(model, drawn, bare.runs)
        ):
            return True
    return False


def _same(one: Sequence[list[Any]], other: Sequence[list[Any]]) -> bool:
    return len(one) == len(other) and all(agree(a, b) for a, b in zip(one, other, strict=True))


def _drawn(rng: random.Random, array: Any) -> Any:
    """The same, in another order, or numbers that engines err with; what is not an array of numbers stays."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufV" or rng.random() < 0.3:
        return array
    if rng.random() < 0.2:
        return np.random.default_rng(rng.randrange(1 << 32)).permutation(array.ravel()).reshape(array.shape)
    profile = rng.choice(("ordinary", "wide", "special"))
    return numbers(rng, onnx_kind(array.dtype), array.size, profile).reshape(array.shape)


def _specified(model: ModelProto, feeds: Sequence[dict[str, Any]]) -> bool:
    try:
        held = inner_values(model, feeds)
    except Exception:  # the evaluators cannot tell: what is given says something too
        held = list(feeds)
    return not unspecified(model, held)
