# SPDX-License-Identifier: Apache-2.0
"""Random graphs on a preset, beside the bare engine, ONNX Runtime without optimizations, and ONNX's evaluator.

``python -m backend_test.differential --preset Openvino --count 2000 --seed 7``; graph i is a function of the seed and i.
With ``--chains`` each node reads the last one's result and most sizes are equal, as in the networks that engines fuse; with
``--wide-chains`` there are as many channels as the blocks that engines compute in, or a few more. With ``--patterns`` they are what
engines fuse (attentions, normalizations, quantized layers), each changed in a few places. With ``--altered`` they are ONNX's cases with
other attributes, operands and sizes. With ``--bodies`` they are Loops, Scans and Ifs, one in another;
with ``--contrib`` operators of ONNX Runtime's domain.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the process that forks has one thread

from onnx import ModelProto

from backend_test.search import judge
from backend_test.search.answers import summary
from backend_test.search.command import Outcome, main
from backend_test.search.findings import Finding
from backend_test.search.graphs import (
    Made,
    Plan,
    random_bodies,
    random_case,
    random_chain,
    random_contrib,
    random_graph,
    random_pattern,
)
from backend_test.search.isolation import Stages
from backend_test.search.other_inputs import wrong_with_others
from backend_test.search.parts import inner_values
from backend_test.search.sensitivity import sensitive
from backend_test.search.shrink import Found, shrink, signature
from backend_test.search.trial import Trial, approximate, opinion_by_node, second_opinion, try_model
from backend_test.search.unspecified import unspecified

#: Wrong numbers, which rounding may explain.
_NUMBERS = (judge.WORSE_WRONG, judge.WRONG, judge.UNJUDGED, judge.DISPUTED)

#: How a refusal begins to name what the engine computes wrongly.
_DEFECT = "it does not compute "


def graph_work(preset: str, options: argparse.Namespace) -> Any:
    """The work on one graph."""
    plan = Plan(operators=tuple(filter(None, options.operators.split(","))))

    def work(i: int, stages: Stages) -> Outcome:
        rng = random.Random(f"{options.seed}:{i}")
        made = _made(rng, options, plan)
        trial = try_model(preset, made.model, made.feeds, stages)
        if trial.verdict.category == judge.UNJUDGED:
            trial = second_opinion(preset, made.model, made.feeds, trial, stages)
        verdict = trial.verdict
        if not verdict.is_finding and verdict.category not in (judge.UNJUDGED, judge.DISPUTED, judge.INVALID):
            return Outcome(verdict.category, verdict.why[:200] if verdict.category == judge.WARNED else "")
        return _look_closer(preset, i, (made.model, list(made.feeds), trial), stages)

    return work


def _made(rng: random.Random, options: argparse.Namespace, plan: Plan) -> Made:
    if options.patterns:
        return random_pattern(rng)
    if options.altered:
        return random_case(rng, plan.operators)
    if options.bodies:
        return random_bodies(rng)
    if options.contrib:
        return random_contrib(rng)
    if options.chains or options.wide_chains:
        return random_chain(rng, wide=options.wide_chains)
    return random_graph(rng, plan)


def _look_closer(preset: str, i: int, found: Found, stages: Stages) -> Outcome:
    """Shrink what was found, and leave out what proves nothing."""
    count = 0

    def attempt(model: ModelProto, feeds: list[dict[str, Any]]) -> Trial:
        nonlocal count
        count += 1
        trial = try_model(preset, model, feeds, stages, f"part {count} ")
        if trial.verdict.category == judge.UNJUDGED:
            trial = second_opinion(preset, model, feeds, trial, stages, f"part {count} ")
        return trial

    whole = found[2].verdict
    found = shrink(found, attempt)
    model, feeds, trial = found
    if trial.verdict.category in (judge.WORSE_WRONG, judge.WRONG) and not trial.answers["reference"].runs:
        trial = opinion_by_node(preset, model, feeds, trial, stages)
        found = model, feeds, trial
        if not trial.verdict.is_finding:
            return Outcome(trial.verdict.category, trial.verdict.why[:200])
    if whole.category in (*_NUMBERS, judge.WORSE_REFUSED):
        try:
            held = inner_values(model, feeds)
        except Exception:  # the evaluators cannot tell: what is given says something too
            held = feeds
        if reason := unspecified(model, held):
            return Outcome(judge.UNSPECIFIED, reason)
    if whole.category in _NUMBERS and (
        approximate(model, trial) or sensitive(model, feeds, trial.answers["ours"].runs)
    ):
        return Outcome("sensitive", "rounding changes as much")
    if (
        trial.verdict.category == judge.WORSE_REFUSED
        and _DEFECT in trial.verdict.why
        and wrong_with_others(preset, model, feeds, trial.answers, stages)
    ):
        return Outcome(judge.JUSTIFIED, trial.verdict.why[:200])
    text = report(preset, i, found)
    category = trial.verdict.category if trial.verdict.is_finding else whole.category
    made = Finding(signature(preset, found), category, model.SerializeToString(), text, feeds)
    return Outcome(category, trial.verdict.why[:200], made, counts=trial.verdict.is_finding)


def report(preset: str, i: int, found: Found) -> str:
    """What everybody made of a model."""
    model, _, trial = found
    lines = [f"graph {i}, on {preset}: {trial.verdict.category}. {trial.verdict.why}"]
    lines += [f"warned: {w}" for w in trial.answers["ours"].warnings]
    for name, answer in trial.answers.items():
        lines.append(f"\n{name}: {answer}")
        for run, outputs in enumerate(answer.runs):
            lines += [f"  run {run + 1}, output {n}: {summary(x)}" for n, x in enumerate(outputs)]
    lines.append("")
    lines.append(str(model)[:6000])
    return "\n".join(lines)


def more_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this search has."""
    parser.add_argument(
        "--chains", action="store_true", help="nodes of networks in a row, most sizes equal; not with --operators"
    )
    parser.add_argument("--wide-chains", action="store_true", help="the same, most with 7 to 33 channels")
    parser.add_argument(
        "--patterns",
        action="store_true",
        help="patterns that engines fuse, changed in a few places; not with --operators",
    )
    parser.add_argument(
        "--altered",
        action="store_true",
        help="ONNX's cases with other attributes, operands and sizes",
    )
    parser.add_argument(
        "--bodies", action="store_true", help="Loops, Scans and Ifs, one in another; not with --operators"
    )
    parser.add_argument(
        "--contrib", action="store_true", help="operators of ONNX Runtime's domain; not with --operators"
    )
    parser.add_argument(
        "--operators", default="", help="only these, separated by commas; graphs differ from those without it"
    )


if __name__ == "__main__":
    sys.exit(main("differential", str(__doc__), graph_work, more_options))
