# SPDX-License-Identifier: Apache-2.0
"""Two reports of the same model on the same machine: what became slower, faster or wrong between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.measuring.intervals import Interval, by_process, of_two_runs
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.report import Report

#: With fewer rounds than this nothing is said with a confidence of 95 %.
_ROUNDS = 6


class Verdict(StrEnum):
    """What became of a configuration between two reports; of the memory that it needs, "slower" is more and "faster" is less."""

    SLOWER = "slower"
    FAILS_NOW = "fails now"
    INACCURATE_NOW = "inaccurate now"
    FASTER = "faster"
    RUNS_NOW = "runs now"
    ACCURATE_NOW = "accurate now"
    #: No difference beyond noise and tolerance could be shown.
    SAME = "same"
    #: There were too few rounds to tell.
    UNKNOWN = "too few rounds to tell"
    APPEARED = "appeared"
    DISAPPEARED = "disappeared"


#: What makes a comparison a regression.
WORSE = frozenset({Verdict.SLOWER, Verdict.FAILS_NOW, Verdict.INACCURATE_NOW})


@dataclass(frozen=True)
class Row:
    """One configuration in two reports.

    Attributes
    ----------
    name : str
        As the new report calls it, where it is there.
    verdict : Verdict
    ratio : Interval, optional
        New by old, of what is to be small; from 0 to infinity with fewer than six rounds. None where one of them has no figure.
    confidence : float, optional
        The probability that it became slower; None where it cannot be estimated.
    old, new : Measurement, optional
    """

    name: str
    verdict: Verdict
    ratio: Interval | None
    confidence: float | None
    old: Measurement | None
    new: Measurement | None


@dataclass(frozen=True)
class Comparison:
    """What changed between two reports.

    Attributes
    ----------
    objective : str
    tolerance : float
        The share by which a configuration may become slower.
    started : str
        When the old report was begun.
    rows : tuple of Row
        In the new report's order, then those that disappeared.
    changes : tuple of (str, str, str)
        What else differs: a package or a limit, the old and the new one.
    kind : {"bench", "tune"}
    """

    objective: str
    tolerance: float
    started: str
    rows: tuple[Row, ...]
    changes: tuple[tuple[str, str, str], ...] = ()
    kind: str = "bench"

    @property
    def regressed(self) -> bool:
        """Whether something is significantly slower, or ran and now fails, is inaccurate or is not there."""
        gone = [row for row in self.rows if row.verdict is Verdict.DISAPPEARED and self.kind == "bench"]
        return any(row.verdict in WORSE for row in self.rows) or any(
            row.old is not None and row.old.outcome is Outcome.MEASURED for row in gone
        )

    def of(self, verdict: Verdict) -> list[Row]:
        """The rows of a verdict."""
        return [row for row in self.rows if row.verdict is verdict]


def compare(old: Report, new: Report, *, tolerance: float = 0.05) -> Comparison:
    """Hold a report to an older one.

    Parameters
    ----------
    old, new : Report
    tolerance : float
        By what share a configuration may become slower before it counts.

    Raises
    ------
    OptionError
        They are not of the same model, inputs, objective and machine; or the tolerance is not valid.
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise OptionTypeError(f"tolerance is a number; {tolerance!r} was given.")
    if not 0 <= tolerance < 1:
        raise OptionError(f"tolerance is at least 0 and below 1; {tolerance} was given. 0.05 is 5 %.")
    check(old, new)
    before = {_key(m): m for m in old.measurements}
    after = {_key(m): m for m in new.measurements}
    ordered = [_key(m) for m in (*new.ranked, *old.ranked)]
    rows = [_row(before.get(key), after.get(key), new.objective, tolerance) for key in dict.fromkeys(ordered)]
    return Comparison(new.objective, tolerance, old.machine.started, tuple(rows), tuple(_changes(old, new)), new.kind)


def check(old: Report, new: Report) -> None:
    """Hold two reports to being of the same model, inputs, objective and machine.

    Raises
    ------
    OptionError
    """
    facts = [
        ("processor", old.machine.processor, new.machine.processor),
        ("number of CPUs", str(old.machine.cpus), str(new.machine.cpus)),
        ("model's digest", old.model_digest, new.model_digest),
        ("inputs", _inputs(old), _inputs(new)),
        ("objective", old.objective, new.objective),
    ]
    if differ := [f"the {what}: {a} in the old one, {b} in the new one" for what, a, b in facts if a != b]:
        raise OptionError(
            f"These reports cannot be compared. They differ in {'; in '.join(differ)}. Figures from different machines, models, inputs or "
            "objectives say nothing about one another: measure the old one again here, with what the new one was measured with."
        )


def _inputs(report: Report) -> str:
    return ", ".join(f"{name}: {shape}" for name, shape in sorted(report.inputs.items())) or "none"


def _changes(old: Report, new: Report) -> list[tuple[str, str, str]]:
    packages = sorted({*old.machine.packages, *new.machine.packages})
    facts = [
        (name, old.machine.packages.get(name, "none"), new.machine.packages.get(name, "none")) for name in packages
    ]
    facts.append(("allowed", str(old.limits), str(new.limits)))
    facts.append(("inputs", _drawn(old), _drawn(new)))
    facts.append(("reference", old.reference or "none", new.reference or "none"))
    return [fact for fact in facts if fact[1] != fact[2]]


def _drawn(report: Report) -> str:
    return "random" if report.random else "given"


def _key(measurement: Measurement) -> tuple[str, str]:
    return measurement.setup.digest, measurement.model


def _row(old: Measurement | None, new: Measurement | None, objective: str, tolerance: float) -> Row:
    if old is None or new is None:
        one = new or old
        assert one is not None
        return Row(one.name, Verdict.APPEARED if old is None else Verdict.DISAPPEARED, None, None, old, new)
    ratio, confidence = _ratio(old, new, objective)
    return Row(new.name, _verdict(old, new, ratio, tolerance), ratio, confidence, old, new)


def _verdict(old: Measurement, new: Measurement, ratio: Interval | None, tolerance: float) -> Verdict:
    was, now = old.outcome, new.outcome
    if now is not was and Outcome.FAILED in (was, now):
        return Verdict.FAILS_NOW if now is Outcome.FAILED else Verdict.RUNS_NOW
    if now is not was and Outcome.INACCURATE in (was, now):
        return Verdict.INACCURATE_NOW if now is Outcome.INACCURATE else Verdict.ACCURATE_NOW
    if ratio is not None and ratio.low > 1 + tolerance:
        return Verdict.SLOWER
    if ratio is not None and ratio.high < 1 - tolerance:
        return Verdict.FASTER
    return Verdict.UNKNOWN if ratio is not None and math.isinf(ratio.high) else Verdict.SAME


def _ratio(old: Measurement, new: Measurement, objective: str) -> tuple[Interval | None, float | None]:
    """New by old of what is to be small, and how sure it is that it grew."""
    if old.outcome is not Outcome.MEASURED or new.outcome is not Outcome.MEASURED:
        return None, None  # what was dropped on the way was timed for too short
    if objective == "memory":
        if not old.memory or not new.memory:
            return None, None
        times = new.memory / old.memory
        return Interval(times, times, times), None
    if objective == "throughput":  # fewer runs a second is slower
        one, other, ones, others = old, new, old.throughput, new.throughput
    else:
        one, other, ones, others = new, old, tuple(new.rounds), tuple(old.rounds)
    if not ones or not others or not all(value > 0 for value in (*ones, *others)):
        return None, None
    interval, larger = of_two_runs(by_process(ones, one.processes), by_process(others, other.processes))
    if min(len(ones), len(others)) < _ROUNDS:
        return Interval(interval.median, 0.0, math.inf), None
    return interval, larger
