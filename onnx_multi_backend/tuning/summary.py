# SPDX-License-Identifier: Apache-2.0
"""What a report says, in sentences: the same on the page, in Markdown and on a terminal."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx_multi_backend.measuring.figures import (
    bounded,
    cosine_text,
    error_text,
    range_text,
    ratio_text,
    seconds_text,
    share_text,
    significant,
)
from onnx_multi_backend.measuring.intervals import Interval
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.objectives import defaults, objective_of, ran, times_the_best
from onnx_multi_backend.tuning.report import NOISY, Report

#: The preset that all others are held to.
COMMON = "OrtCpu"


def headline(report: Report) -> str:
    """The result in a few words."""
    best = report.best
    if best is None:
        count = len(report.measurements)
        return "Nothing was measured" if not count else f"None of {count} configurations gives a usable result"
    if report.kind == "tune":
        return f"Chosen: {best.name}"
    return f"No significant winner: {best.name} comes first" if report.equals else _winner(report, best)


def _winner(report: Report, best: Measurement) -> str:
    usable = [m for m in report.measurements if m.outcome is Outcome.MEASURED]
    if len(report.measurements) == 1:
        return f"Measured: {best.name}"
    what = objective_of(report).better.capitalize()
    return f"{what}: {best.name}" if len(usable) > 1 else f"The only one with a usable result: {best.name}"


def figure(report: Report, measurement: Measurement) -> str:
    """A measurement's figure, and how sure it is."""
    text = objective_of(report).text(measurement)
    if report.objective == "memory":
        return f"{text} at most"
    interval = measurement.interval
    if report.objective == "latency" and len(measurement.latency) >= 6:
        between = f"{seconds_text(interval.low)} to {seconds_text(interval.high)} with 95 % confidence"
        return f"{text} a run, the median ({between}); rounds differ by {share_text(measurement.noise)}"
    return f"{text} a run, the median" if report.objective == "latency" else f"{text}, the median"


def advantages(report: Report) -> list[str]:
    """How many times as good as the defaults the best is: as OrtCpu's, and as the best preset's."""
    best, objective = report.best, objective_of(report)
    if best is None:
        return []
    usable = [
        m
        for m in defaults(report.measurements)
        if ran(m, objective) and m.outcome in (Outcome.MEASURED, Outcome.NOT_BETTER)
    ]
    common = [m for m in usable if m.setup.preset == COMMON][:1]
    first = sorted(usable, key=objective.cost)[:1]
    found = []
    for measurement in dict.fromkeys(m.name for m in common + first):
        other = report.named(measurement)
        what = f"the defaults of {other.setup.preset}"
        if len(usable) > 1 and other in first:
            what += ", the best of the presets' defaults"
        if other is best:
            found.append(f"These are {what}.")
        elif (interval := times_the_best(report, other)) is not None:
            found.append(_advantage(report.objective, interval, what))
    return found


def _advantage(objective: str, interval: Interval, what: str) -> str:
    sure = f"; {range_text(interval)} with 95 % confidence" if bounded(interval) else ""
    times = f"{'' if bounded(interval) else 'about '}{significant(interval.median)}"
    if objective == "memory":
        return (
            f"1/{significant(interval.median)} of the memory of {what}."
            if interval.median > 1
            else (f"{significant(1 / interval.median)} times the memory of {what}.")
        )
    if bounded(interval) and interval.low <= 1 <= interval.high:
        return f"Not measurably faster than {what} ({times} times as fast{sure})."
    more = sure[2:] if sure else "too few rounds in turn for a confidence interval"
    return f"{times[0].upper()}{times[1:]} times as fast as {what} ({more})."


def no_winner(report: Report) -> str:
    """Which ones are as good as the best, as far as could be measured; empty where there are none."""
    best, equals = report.best, report.equals
    if best is None or not equals:
        return ""
    names = [best.name, *(m.name for m in equals)]
    most = 6
    listed = names if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]
    return f"No significant winner between {_and(listed)}: they differ by no more than noise could make."


def _and(names: Sequence[str]) -> str:
    """Names in a row: apart by semicolons where one of them has a comma, as ``OrtCpu, 1 thread`` has."""
    if len(names) < 2:
        return names[0]
    comma = any("," in name for name in names)
    return f"{('; ' if comma else ', ').join(names[:-1])}{';' if comma else ''} and {names[-1]}"


def notices(report: Report) -> list[str]:
    """What must be known before the figures are believed."""
    found = []
    if report.random:
        found.append(
            f"The inputs were drawn at random{_shapes(report.inputs)}. Times may depend on what is in them, and errors do: give real inputs before you trust an error."
        )
    if report.best is not None and report.noisy and not any("machine was noisy" in note for note in report.notes):
        found.append(
            f"The machine was too noisy: times of {report.best.name} differ by {share_text(report.best.noise)}. "
            "Measure again while nothing else runs."
        )
    elif rough := [m for m in report.equals if m.noise > NOISY]:
        worst = max(rough, key=lambda m: m.noise)
        found.append(
            f"Times of {worst.name} differ by {share_text(worst.noise)}: it cannot be told whether it is slower. "
            "Measure again while nothing else runs."
        )
    if not report.reference:
        found.append("There is no reference: nothing is known of errors.")
    return [*found, *report.notes]


def _shapes(inputs: Mapping[str, str], most: int = 4) -> str:
    """The inputs with their types and shapes, the first of many: `` (x: float32 [1, 3])``."""
    listed = [f"{name}: {what}" for name, what in itertools.islice(inputs.items(), most)]
    more = [f"{len(inputs) - most} more"] if len(inputs) > most else []
    return f" ({'; '.join([*listed, *more])})" if listed else ""


def counts(report: Report) -> str:
    """How many configurations came to what: ``12 measured, 3 failed``."""
    found = Counter(m.outcome for m in report.measurements)
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in Outcome if found[outcome])


@dataclass(frozen=True)
class Gain:
    """What would be gained by a configuration that the user has not allowed.

    Attributes
    ----------
    measurement : Measurement
    ratio : Interval
        How many times the best's cost it has.
    option : str
        What allows it; empty where no limit of errors does.
    what : str
        Of what: ``time``, ``memory``.
    """

    measurement: Measurement
    ratio: Interval
    option: str
    what: str = "time"

    def __str__(self) -> str:
        m = self.measurement
        text = f"{m.name} would take {ratio_text(self.ratio)} of the {self.what}"
        if m.difference is not None:
            text += f", largest error {error_text(m.difference.largest)}, cosine {cosine_text(m.difference.cosine)}"
        if self.option:
            return f"{text}: {self.option} allows it"
        return f"{text}: {m.reason}" if m.reason else text


def gains(report: Report) -> list[Gain]:
    """Those that were measured, are not allowed and would be better than the best, the best of them first."""
    if report.best is None:
        return []
    found = []
    for m in report.measurements:
        ratio = times_the_best(report, m) if m.outcome is Outcome.NOT_ALLOWED else None
        if ratio is not None and (ratio.high < 1 if bounded(ratio) else ratio.median < 1):
            found.append(Gain(m, ratio, _allowing(m), "memory" if report.objective == "memory" else "time"))
    return sorted(found, key=lambda gain: gain.ratio.median)


def _allowing(measurement: Measurement) -> str:
    """The limit, in round figures, that a configuration in less than float32 keeps."""
    difference = measurement.difference
    if measurement.float32 or difference is None or not difference.cosine > 0:
        return ""
    away = 1 - difference.cosine
    if away <= 0:
        return "--min-cosine 0.9999"
    nines = min(math.floor(-math.log10(away)), 6)
    least = 1 - 10.0**-nines if nines >= 1 else math.floor(difference.cosine * 10) / 10
    return f"--min-cosine {least:.{max(nines, 1)}f}"


def setting(report: Report) -> list[tuple[str, str]]:
    """Model, machine and terms, as names and values."""
    machine = report.machine
    shapes = "; ".join(f"{name}: {shape}" for name, shape in report.inputs.items())
    examples = f"{report.examples} example{'' if report.examples == 1 else 's'}"
    took = f"{report.seconds:.0f} s" if report.seconds < 600 else seconds_text(report.seconds)
    allowed = f" of {seconds_text(report.budget)}" if math.isfinite(report.budget) else ""
    return [
        ("Model", report.model),
        ("Inputs", f"{shapes or 'none'} ({examples}, {'random' if report.random else 'given'})"),
        ("Reference", report.reference or "none"),
        ("Allowed", str(report.limits)),
        ("Objective", report.objective),
        ("Processor", machine.processor),
        ("CPUs", f"{machine.cpus} ({machine.cpus_why})" if machine.cpus_why else str(machine.cpus)),
        ("Packages", ", ".join(f"{name} {version}" for name, version in machine.packages.items())),
        ("Started", f"{machine.started}, took {took}{allowed}"),
    ]
