# SPDX-License-Identifier: Apache-2.0
"""What is to be small for each objective, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onnx_multi_backend.measuring.figures import NONE, bytes_text, seconds_text, seconds_tick, significant
from onnx_multi_backend.measuring.intervals import Interval
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.report import Report

_MIB = 2.0**20


@dataclass(frozen=True)
class Objective:
    """How an objective is measured and written.

    Attributes
    ----------
    cost : callable
        Of a measurement: what is to be small and is above 0; NaN where it was not measured.
    text : callable
        A measurement's figure as people know it: ``1.23 ms``, ``812 runs/s``, ``120.5 MiB``.
    axis : str
        What the scale of a plot of `cost` is called.
    tick : callable
        A cost on such a scale.
    header : str
        Of the figure in a table.
    better : str
        What the best is: ``fastest``.
    """

    cost: Callable[[Measurement], float]
    text: Callable[[Measurement], str]
    axis: str
    tick: Callable[[float], str]
    header: str
    better: str


def _seconds_of_many(measurement: Measurement) -> float:
    return 1 / measurement.per_second if measurement.per_second > 0 else math.nan


def _mib(measurement: Measurement) -> float:
    return measurement.memory / _MIB if measurement.memory else math.nan


OBJECTIVES = {
    "latency": Objective(
        lambda m: m.median,
        lambda m: seconds_text(m.median),
        "time of a run, the median (logarithmic)",
        seconds_tick,
        "Time",
        "fastest",
    ),
    "throughput": Objective(
        _seconds_of_many,
        lambda m: per_second_text(m),
        "time by run, many under way (logarithmic)",
        seconds_tick,
        "Runs/s",
        "fastest",
    ),
    "memory": Objective(
        _mib,
        lambda m: memory_text(m),
        "peak memory in MiB (logarithmic)",
        lambda mib: f"{mib:.6g}",
        "Memory",
        "smallest",
    ),
}


def objective_of(report: Report) -> Objective:
    """How the report's objective is measured and written; costs of different minutes are made comparable by `Measurement.times_best`."""
    plain, best = OBJECTIVES[report.objective], report.best

    def cost(measurement: Measurement) -> float:
        if best is None or measurement is best or measurement.times_best is None or math.isnan(plain.cost(measurement)):
            return plain.cost(measurement)
        return measurement.times_best * plain.cost(best)

    return replace(plain, cost=cost)


def per_second_text(measurement: Measurement) -> str:
    """Runs per second."""
    figure = significant(measurement.per_second)
    return figure if figure == NONE else f"{figure} runs/s"


def memory_text(measurement: Measurement) -> str:
    """The most memory."""
    return NONE if measurement.memory is None else bytes_text(measurement.memory)


def ran(measurement: Measurement, objective: Objective) -> bool:
    """Whether there is a figure for the objective."""
    return measurement.outcome is not Outcome.FAILED and math.isfinite(objective.cost(measurement))


def times_the_best(report: Report, measurement: Measurement) -> Interval | None:
    """How many times the best's cost it has; from 0 to infinity where too little was measured to say between what."""
    best = report.best
    if best is None or best is measurement:
        return None
    if (found := report.against_best(measurement)) is not None:
        return found
    if measurement.times_best is not None:
        return Interval(measurement.times_best, 0.0, math.inf)
    return _plain(objective_of(report), measurement, best)


def _plain(objective: Objective, one: Measurement, other: Measurement) -> Interval | None:
    cost, by = objective.cost(one), objective.cost(other)
    return Interval(cost / by, 0.0, math.inf) if math.isfinite(cost) and by > 0 else None


def defaults(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Those of presets as they are, without an option."""
    return [m for m in measurements if not m.setup.options and m.model == "as given"]
