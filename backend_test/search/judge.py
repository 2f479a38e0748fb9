# SPDX-License-Identifier: Apache-2.0
"""Who is right: answers are compared, the references vote, and a category comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from backend_test.search.answers import DEAD, FATAL, REFUSED, RESULT, UNTYPED, Answer

OK = "ok"
REFUSED_TOO = "refused"  # so does the bare engine, or it is wrong: an honest no
UNJUDGED = "unjudged"  # no two references agree, and none agrees with the preset
DISPUTED = "disputed"  # the preset and its engine agree, ONNX's reference evaluator does not
WARNED = "warned"  # wrong, with a warning of the package
MISPLACED = "misplaced"  # refused for where its nodes would run, as `fallback` asks
RANGE = "range"  # refused for an integer beyond int32, as `precision_policy` has it, though these come out right
JUSTIFIED = "justified"  # refused for a defect that the bare engine shows with other inputs
INVALID = "invalid"  # nobody runs it: the generator's fault
UNSPECIFIED = "unspecified"  # ONNX does not say what is right
#: What is a finding.
WORSE_WRONG, WORSE_REFUSED, WRONG = "worse-wrong", "worse-refused", "silently-wrong"
FINDINGS = (WORSE_WRONG, WORSE_REFUSED, WRONG, "dead", "untyped", "hang", "memory")

#: The words for integers beyond int32, of an input and of a constant.
_BEYOND = re.compile(
    r"which computes u?int\d+ in u?int\d+, gives correct results only|constant .*is beyond what int32 holds"
)

#: Relative tolerance by dtype, and absolute as a share of the largest finite number.
_TOLERANCE = {
    "float64": (1e-7, 1e-9),
    "float32": (2e-4, 2e-5),
    "float16": (1e-2, 4e-3),
    "bfloat16": (4e-2, 2e-2),
    "float8_e4m3fn": (0.13, 1e-2),
    "float8_e4m3fnuz": (0.13, 1e-2),
    "float8_e5m2": (0.26, 1e-2),
    "float8_e5m2fnuz": (0.26, 1e-2),
    "float4_e2m1fn": (0.5, 0.0),
}
#: The distance of 1 and the next number.
_STEP = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


class Verdict(NamedTuple):
    """A category, in which run, and why."""

    category: str
    run: int = 0
    why: str = ""

    @property
    def is_finding(self) -> bool:
        return self.category in FINDINGS


def agree(one: Any, other: Any, *, slack: float = 1.0) -> bool:
    """Whether two outputs are the same but for rounding."""
    if isinstance(one, (list, tuple)) or isinstance(other, (list, tuple)):
        if not (isinstance(one, (list, tuple)) and isinstance(other, (list, tuple))) or len(one) != len(other):
            return False
        return all(agree(a, b, slack=slack) for a, b in zip(one, other, strict=True))
    if one is None or other is None:
        return one is None and other is None
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind in "OU" or b.dtype.kind in "OU":
        return a.shape == b.shape and [str(x) for x in a.ravel()] == [str(x) for x in b.ravel()]
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(close(a, b, slack).all())


def close(a: np.ndarray, b: np.ndarray, slack: float = 1.0) -> np.ndarray:
    """Where two arrays of numbers agree; what is subnormal may have been flushed to zero.

    Numbers of a type without a tolerance (integers, float8e8m0) agree where they are equal or both NaN.
    """
    if a.dtype.name not in _TOLERANCE:
        return np.asarray((a == b) | ((a != a) & (b != b)))
    rtol, share = _TOLERANCE[a.dtype.name]
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(x) & np.isfinite(y)
        largest = np.abs(np.where(finite, y, 0)).max(initial=0.0)
        atol = max(share * min(largest, 1e30), 1.2e-38)
        near = np.abs(x - y) <= slack * (rtol * np.maximum(np.abs(x), np.abs(y)) + atol)
        return np.asarray(np.where(finite, near, (x == y) | (np.isnan(x) & np.isnan(y))))


def within_precision(one: Any, other: Any) -> bool:
    """Whether two outputs differ by no more than a few steps of their type around 1.

    A function that is approximated, or computed as a difference (``Exp(x) - 1``), has that absolute error.
    """
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(within_precision, one, other))
    if any(value is None or isinstance(value, (list, tuple)) for value in (one, other)):
        return agree(one, other)
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.name not in _STEP:
        return agree(one, other)
    with np.errstate(all="ignore"):
        near = np.abs(a.astype(np.float64) - b.astype(np.float64)) <= 4 * _STEP[a.dtype.name]
    return bool((near | close(a, b)).all())


def _same(one: Sequence[Any], other: Sequence[Any], slack: float) -> bool:
    return len(one) == len(other) and all(agree(a, b, slack=slack) for a, b in zip(one, other, strict=True))


def judge(ours: Answer, bare: Answer, references: Mapping[str, Answer], *, slack: float = 1.0) -> Verdict:
    """Judge a preset's answer.

    Parameters
    ----------
    ours : Answer
        Of the runs A, B and A again.
    bare : Answer
        The engine's own, of the runs A and B.
    references : mapping of str to Answer
        The same of ONNX Runtime without optimizations (``unoptimized``) and of ONNX's evaluator (``reference``).
    slack : float
        By which tolerances are multiplied.
    """
    if ours.kind in FATAL:
        return Verdict(ours.kind if bare.kind != ours.kind else REFUSED_TOO, 0, ours.error)
    if ours.kind == UNTYPED:
        return Verdict("untyped", 0, ours.error)
    voters = {"bare": bare, **references}
    if ours.kind == REFUSED:
        if ours.error.startswith("MisplacedError"):
            return Verdict(MISPLACED, 0, ours.error)
        return _refused(ours, bare, references, slack)
    if all(v.kind != RESULT and not v.runs for v in voters.values()):
        return Verdict(UNJUDGED, 0, "nobody else runs it")
    worst = Verdict(OK)
    for run, result in enumerate(ours.runs):
        verdict = _one_run(run, result, voters, ours, slack)
        if verdict.is_finding:
            return verdict
        if verdict.category != OK and worst.category == OK:
            worst = verdict
    return worst


def _refused(ours: Answer, bare: Answer, references: Mapping[str, Answer], slack: float) -> Verdict:
    if bare.kind != RESULT:
        nobody = all(not r.runs for r in references.values())
        return Verdict(INVALID if nobody else REFUSED_TOO, 0, ours.error)
    for run, result in enumerate(bare.runs):
        others = [r.runs[run] for r in references.values() if len(r.runs) > run]
        if not any(_same(result, other, slack) for other in others):
            return Verdict(REFUSED_TOO, run, ours.error)
    return Verdict(RANGE if _BEYOND.search(ours.error) else WORSE_REFUSED, 0, ours.error)


def _one_run(run: int, result: list[Any], voters: Mapping[str, Answer], ours: Answer, slack: float) -> Verdict:
    """Each output by itself, since the references may err in one and be right in another; the worst of them."""
    asked = run % 2  # the third run is the first again
    given = {name: v.runs[asked] for name, v in voters.items() if len(v.runs) > asked}
    worst = Verdict(OK, run)
    for place, output in enumerate(result):
        outputs = {name: other[place] for name, other in given.items() if len(other) == len(result)}
        verdict = _one_output(run, output, outputs, voters["bare"].kind, ours.warnings, slack)
        if verdict.is_finding:
            return verdict
        worst = verdict if worst.category == OK else worst
    return worst


def _one_output(
    run: int, output: Any, given: Mapping[str, Any], bare: str, warnings: Sequence[str], slack: float
) -> Verdict:
    with_us = {name for name, other in given.items() if agree(output, other, slack=slack)}
    right = {
        name
        for name, one in given.items()
        if any(agree(one, two, slack=slack) for n, two in given.items() if n != name)
    }
    reference = "reference" in given
    if with_us:
        # ONNX Runtime with and without optimizations has the same kernels: only the reference is of another make.
        if "reference" in with_us or not reference or (with_us - {"bare"} and "reference" not in right):
            return Verdict(OK if not reference or "reference" in with_us else DISPUTED, run)
        if not right or with_us & right:
            return Verdict(DISPUTED, run)
        return Verdict(WARNED, run, warnings[0]) if warnings else Verdict(WRONG, run)
    if warnings:
        return Verdict(WARNED, run, warnings[0])
    if not right:
        return Verdict(UNJUDGED, run, "no two others agree")
    if "bare" in right:
        return Verdict(WORSE_WRONG, run)
    if "bare" not in given and bare in (REFUSED, DEAD):
        return Verdict(WORSE_WRONG if bare == REFUSED else WRONG, run)
    return Verdict(WRONG, run)
