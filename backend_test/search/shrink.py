# SPDX-License-Identifier: Apache-2.0
"""The smallest part of a graph that shows the same, and the signature that makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from backend_test.search.answers import REFUSED, Answer
from backend_test.search.judge import WORSE_WRONG, WRONG
from backend_test.search.parts import inner_values, part
from backend_test.search.trial import Trial

Feeds = list[dict[str, Any]]
Found = tuple[ModelProto, Feeds, Trial]


def shrink(found: Found, attempt: Callable[[ModelProto, Feeds], Trial]) -> Found:
    """Cut nodes off while the verdict stays the same.

    Parameters
    ----------
    found : (ModelProto, feeds, Trial)
    attempt : callable
        Tries a model.
    """
    model, feeds, trial = found
    positions = [i for i, n in enumerate(model.graph.node) if n.op_type != "Constant"]
    if len(positions) < 2:
        return found
    try:
        values = inner_values(model, feeds)
    except Exception:  # an evaluator that fails here leaves the graph as it is
        return found

    def shows(kept: Sequence[int]) -> Found | None:
        made = part(model, kept, values)
        if made is None:
            return None
        again = attempt(*made)
        return (*made, again) if _is_the_same(trial, again) else None

    for position in positions:
        single = shows([position])
        if single:
            return single
    kept = positions
    for position in reversed(positions):
        fewer = [k for k in kept if k != position]
        smaller = shows(fewer) if fewer else None
        if smaller:
            kept, found = fewer, smaller
    return found


def _is_the_same(whole: Trial, part: Trial) -> bool:
    """Whether a part shows what the whole does.

    A model that the engine refuses by itself is wrong as the engine is wrong, not worse, where it runs the part and errs as the preset does.
    """
    found, wanted = part.verdict.category, whole.verdict.category
    refused = whole.answers["bare"].kind == REFUSED
    return found == wanted or (refused and (wanted, found) == (WORSE_WRONG, WRONG))


def signature(preset: str, found: Found) -> str:
    """One line that findings of one cause share: preset, category, operators, type and what is special."""
    model, feeds, trial = found
    verdict = trial.verdict
    nodes = [n for n in model.graph.node if n.op_type != "Constant"]
    functions = {f.name: f.node for f in model.functions}
    operators = "+".join(sorted({_operator(n, functions) for n in nodes}))
    words = [preset, verdict.category, operators, _kind(model, feeds), *_special(model, feeds, trial)]
    if verdict.run and verdict.category.endswith("wrong"):
        words.append(f"run{verdict.run + 1}")
    if verdict.category == "untyped":
        words.append(f"{trial.answers['ours'].error.partition(':')[0]} at {trial.answers['ours'].where}")
    if verdict.category in ("dead", "worse-refused"):
        words.append(_normal(trial.answers["ours"].error))
    return " ".join(words)


def _operator(node: NodeProto, functions: dict[str, Any]) -> str:
    inside = [n for a in node.attribute for g in ([a.g] if a.HasField("g") else a.graphs) for n in g.node]
    inside += functions.get(node.op_type, ()) if node.domain else ()
    name = "function" if node.domain else node.op_type
    inner = sorted({_operator(n, functions) for n in inside if n.op_type not in ("Identity", "Constant")})
    return f"{name}({','.join(inner)})" if inner else name


def _arrays(model: ModelProto, feeds: Feeds) -> list[np.ndarray]:
    from onnx import numpy_helper

    found = [array for fed in feeds for array in fed.values() if isinstance(array, np.ndarray)]
    return found + [numpy_helper.to_array(t) for t in model.graph.initializer]


def _kind(model: ModelProto, feeds: Feeds) -> str:
    """The element type of the first operand of the first node."""
    from onnx import numpy_helper

    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            continue
        for name in node.input:
            array = feeds[0].get(name, known.get(name))
            if isinstance(array, np.ndarray):
                return array.dtype.name
    return "none"


def _special(model: ModelProto, feeds: Feeds, trial: Trial) -> list[str]:
    """What is special about the numbers that go in; of those that come out, only whether one should be NaN."""
    words = set()
    right = [a for run in trial.answers["unoptimized"].runs for a in run if isinstance(a, np.ndarray)]
    if any(a.dtype.kind == "f" and np.isnan(a).any() for a in right):
        words.add("nan")
    for array in _arrays(model, feeds):
        if array.dtype.kind in "fV":
            with np.errstate(all="ignore"):
                wide = array.astype(np.float64)
            if np.isnan(wide).any():
                words.add("nan")
            if np.isinf(wide).any():
                words.add("inf")
        elif array.dtype.kind in "iu" and array.size:
            most = max(abs(int(array.min())), abs(int(array.max())))
            words.add(
                "beyond2**31"
                if most >= 2**31 - 1 and most < 2**63 - 1
                else "beyond2**24"
                if 2**24 < most < 2**31 - 1
                else ""
            )
        if not array.size:
            words.add("empty")
    return sorted(words - {""})


def _normal(text: str) -> str:
    """A message without what differs from model to model."""
    text = re.sub(r"0x[0-9a-f]+|\d+", "N", text)
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "Q", text)
    return text.replace("[", "(").replace("]", ")")[:240]


def fuzz_signature(preset: str, category: str, answers: dict[str, Answer], operators: str) -> str:
    """One line that mutants with one cause share: an exception is known by its type and where it was raised."""
    name = next((n for n in ("ours", "compatibility") if answers[n].kind == category), "ours")
    answer = answers[name]
    if category == "untyped":
        return f"{preset} untyped {answer.error.partition(':')[0]} at {answer.where or name}"
    return f"{preset} {category} {name}{f' {answer.place}' if answer.place else ''} {operators} {_normal(answer.error)[:60]}"
