# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases in other forms on a preset: with open sizes, of constants, in a branch, loop or function, among other nodes, in other types.

``python -m backend_test.variants --preset Openvino``; the results are those of the case. The seed tells where it begins, and with
``--pairs`` which two forms at a time each case gets.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from random import Random
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the process that forks has one thread

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from backend_test.differential import report
from backend_test.search import engines, judge
from backend_test.search.answers import RESULT, Answer
from backend_test.search.cases import cases
from backend_test.search.command import Outcome, main
from backend_test.search.findings import Finding
from backend_test.search.forms import NAMES, Case, in_form, pairs
from backend_test.search.forms.types import are_right
from backend_test.search.isolation import Stages
from backend_test.search.shrink import signature
from backend_test.search.trial import Trial, ours

#: Cases that are a function's body, which other cases have.
_EXPANDED = "_expanded"


def variants(word: str = "") -> list[tuple[TestCase, str]]:
    """What there is to try, of cases with a word in their name."""
    return [(case, name) for name in NAMES for case in _plain(word)]


def paired(word: str, seed: int) -> list[tuple[TestCase, str]]:
    """As many pairs of forms as there are variants, drawn by the seed."""
    random = Random(seed)
    plain = _plain(word)
    return [(random.choice(plain), name) for name in islice(pairs(random), len(NAMES) * len(plain))] if plain else []


def _plain(word: str) -> list[TestCase]:
    return [case for case in cases()[0] if word in case.name and _EXPANDED not in case.name]


def variant_work(preset: str, options: argparse.Namespace) -> Any:
    """The work on one variant."""
    found = paired(options.cases, options.seed) if options.pairs else variants(options.cases)
    first = 0 if options.pairs else options.seed
    if not found:
        sys.exit(f"No case of ONNX has {options.cases!r} in its name.")
    if options.count is None:
        options.count = len(found)

    def work(i: int, stages: Stages) -> Outcome:
        plain, name = found[(i + first) % len(found)]
        case = whole(plain)
        evaluated = []

        def evaluate(typed: Case) -> Case | None:
            data, feeds = typed.model.SerializeToString(), [typed.feeds]
            answer = stages.run("reference", lambda note: engines.reference(data, feeds, note))
            if answer.kind != RESULT or not are_right(typed.model, answer.runs[0], case.results or []):
                return None
            evaluated.append(typed)
            return typed._replace(results=answer.runs[0])

        made = in_form(name, case, evaluate)
        if made is None:
            return Outcome("none")
        trial = _tried(preset, made, stages, "")
        if not trial.verdict.is_finding:
            return Outcome(trial.verdict.category)
        if not evaluated:  # else the case is another one
            itself = _tried(preset, case, stages, "case ")
            if itself.verdict.category != judge.OK:
                return Outcome("as the case", itself.verdict.category)
        told = (made.model, [made.feeds] * 2, trial)
        words = f"{plain.name} {name}\n\n{report(preset, i, told)}"
        category, data = trial.verdict.category, made.model.SerializeToString()
        finding = Finding(f"{signature(preset, told)} {name}", category, data, words, [made.feeds])
        return Outcome(category, plain.name, finding, counts=True)

    return work


def whole(case: TestCase) -> Case:
    """A case of ONNX with its first inputs and their results."""
    assert case.model is not None and case.data_sets is not None
    given, results = case.data_sets[0]
    feeds = {v.name: _array(x) for v, x in zip(case.model.graph.input, given, strict=False)}
    return Case(case.model, feeds, [_array(x) for x in results])


def _array(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return value if value is None or isinstance(value, (list, tuple)) else np.asarray(value)


def _tried(preset: str, made: Case, stages: Stages, word: str) -> Trial:
    """The preset's answer beside the engine's own, judged by what is right, as if both references had said it."""
    data, feeds, right = made.model.SerializeToString(), [made.feeds] * 2, made.results or []
    bare = stages.run(f"{word}bare", lambda note: engines.bare_of(preset)(data, feeds, note))
    own = ours(preset, data, feeds, stages, word)
    told = dict.fromkeys(("unoptimized", "reference"), Answer(RESULT, [right] * 2))
    # ONNX's attributes are float32, which is what float64 comes to.
    slack = 100.0 if any(getattr(x, "dtype", None) == np.float64 for x in right) else 1.0
    return Trial(judge.judge(own, bare, told, slack=slack), {"ours": own, "bare": bare, **told})


def more_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this search has."""
    parser.add_argument(
        "--pairs", action="store_true", help="two forms at a time, drawn by the seed; by default each form"
    )
    parser.add_argument("--cases", default="", help="only cases with this word in their name; all variants by default")


if __name__ == "__main__":
    sys.exit(main("variants", str(__doc__), variant_work, more_options))
