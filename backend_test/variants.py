# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases in other forms on a preset: with open sizes, of constants, in a branch or a function, among other nodes.

``python -m backend_test.variants --preset Openvino``; the results are those of the case. The seed tells where it begins.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the process that forks has one thread

import numpy as np
from onnx.backend.test.case.test_case import TestCase

from backend_test.differential import report
from backend_test.search import engines, judge
from backend_test.search.answers import RESULT, Answer
from backend_test.search.command import Outcome, main
from backend_test.search.findings import Finding
from backend_test.search.isolation import Stages
from backend_test.search.mutations.seeds import cases
from backend_test.search.shrink import signature
from backend_test.search.trial import Trial, ours
from backend_test.search.variants import NAMES, Case, variant

#: Cases that are a function's body, which other cases have.
_EXPANDED = "_expanded"


def variants(word: str = "") -> list[tuple[TestCase, str]]:
    """What there is to try, of cases with a word in their name."""
    plain = [case for case in cases()[0] if word in case.name and _EXPANDED not in case.name]
    return [(case, name) for name in NAMES for case in plain]


def variant_work(preset: str, options: argparse.Namespace) -> Any:
    """The work on one variant."""
    found = variants(options.cases)
    if not found:
        sys.exit(f"No case of ONNX has {options.cases!r} in its name.")
    if options.count is None:
        options.count = len(found)

    def work(i: int, stages: Stages) -> Outcome:
        case, name = found[(i + options.seed) % len(found)]
        given, results = case.data_sets[0]
        feeds = {v.name: _array(x) for v, x in zip(case.model.graph.input, given, strict=False)}
        made = variant(name, case.model, feeds)
        if made is None:
            return Outcome("none")
        right = [_array(x) for x in results]
        trial = _tried(preset, made, right, stages, "")
        if not trial.verdict.is_finding:
            return Outcome(trial.verdict.category)
        itself = _tried(preset, (case.model, feeds), right, stages, "case ")
        if itself.verdict.category != judge.OK:
            return Outcome("as the case", itself.verdict.category)
        model, fed = made
        words = f"{case.name} {name}\n\n{report(preset, i, (model, [fed, fed], trial))}"
        line = f"{signature(preset, (model, [fed, fed], trial))} {name}"
        category = trial.verdict.category
        return Outcome(
            category, case.name, Finding(line, category, model.SerializeToString(), words, [fed]), counts=True
        )

    return work


def _array(value: Any) -> Any:
    return value if value is None or isinstance(value, (list, tuple)) else np.asarray(value)


def _tried(preset: str, made: Case, right: list[Any], stages: Stages, word: str) -> Trial:
    """The preset's answer beside the engine's own, judged by what ONNX gives with the case, as if both references had said it."""
    data, feeds = made[0].SerializeToString(), [made[1]] * 2
    bare = stages.run(f"{word}bare", lambda note: engines.bare_of(preset)(data, feeds, note))
    own = ours(preset, data, feeds, stages, word)
    told = dict.fromkeys(("unoptimized", "reference"), Answer(RESULT, [right] * 2))
    return Trial(judge.judge(own, bare, told), {"ours": own, "bare": bare, **told})


def more_options(parser: argparse.ArgumentParser) -> None:
    """The option that only this search has."""
    parser.add_argument("--cases", default="", help="only cases with this word in their name; all variants by default")


if __name__ == "__main__":
    sys.exit(main("variants", str(__doc__), variant_work, more_options))
