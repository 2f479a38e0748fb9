# SPDX-License-Identifier: Apache-2.0
"""All that was measured of a model, and where."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.measuring.intervals import Interval, ratio
from onnx_multi_backend.tuning.differences import Limits
from onnx_multi_backend.tuning.measurement import Measurement, Outcome

if TYPE_CHECKING:
    from onnx_multi_backend.tuning.comparing import Comparison

FORMAT = 1

#: What differs by less is called equal, whatever the interval: rounds are looked at until they show a difference, and the next process may differ
#: more.
LEAST_EFFECT = 0.02

#: Rounds that differ by more than this, as `Measurement.noise` says, are too noisy for a promise.
NOISY = 0.1


@dataclass(frozen=True)
class Machine:
    """Where it was measured.

    Attributes
    ----------
    started : str
        ISO 8601, in UTC.
    processor : str
        Name, vendor, family, model and instruction sets.
    cpus : int
        Those that the process may use.
    cpus_why : str
        Why so many.
    packages : mapping of str to str
        Versions of onnx and of the engines.
    """

    started: str
    processor: str
    cpus: int
    cpus_why: str
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """What `bench` and `tune` found.

    Attributes
    ----------
    kind : {"bench", "tune"}
    model : str
        Its file, or a name.
    model_digest : str
        Tells the model from others.
    machine : Machine
    inputs : mapping of str to str
        Type and shape of each input.
    examples : int
        How many inputs results were compared on.
    random : bool
        Whether these were drawn at random.
    reference : str
        What they were compared with; empty where there is no reference.
    limits : Limits
    objective : {"latency", "throughput", "memory"}
    budget, seconds : float
        Seconds that were allowed (infinite for `bench`), and taken.
    measurements : tuple of Measurement
        In the order in which they were tried.
    chosen : str
        The name of the configuration that was chosen; empty in `bench`.
    notes : tuple of str
    """

    kind: str
    model: str
    model_digest: str
    machine: Machine
    inputs: Mapping[str, str]
    examples: int
    random: bool
    reference: str
    limits: Limits
    objective: str
    budget: float
    seconds: float
    measurements: tuple[Measurement, ...]
    chosen: str = ""
    notes: tuple[str, ...] = ()

    @property
    def ranked(self) -> list[Measurement]:
        """Those that ran with results as near as asked, the best for the objective first; after them the others."""
        good = [m for m in self.measurements if m.outcome is Outcome.MEASURED]
        other = [m for m in self.measurements if m.outcome is not Outcome.MEASURED]
        order = list(Outcome)
        return [
            *sorted(good, key=lambda m: score(m, self.objective)),
            *sorted(other, key=lambda m: (order.index(m.outcome), m.times_best or math.inf, score(m, self.objective))),
        ]

    @property
    def best(self) -> Measurement | None:
        """The chosen one; in `bench` the best for the objective. None where nothing runs."""
        if self.chosen:
            return self.named(self.chosen)
        first = self.ranked[:1]
        return first[0] if first and first[0].outcome is Outcome.MEASURED else None

    def named(self, name: str) -> Measurement:
        """The measurement of a name."""
        return next(m for m in self.measurements if m.name == name)

    def against_best(self, measurement: Measurement) -> Interval | None:
        """How many times the best's time it takes, where both were timed in turn; the other way round for throughput."""
        best = self.best
        if best is None or best is measurement or best.contest != measurement.contest:
            return None
        if self.objective == "throughput":
            ones, others = best.throughput, measurement.throughput
        elif self.objective == "latency":
            ones, others = tuple(measurement.rounds), tuple(best.rounds)
        else:
            return None
        if not ones or measurement.processes[: len(best.processes)] != best.processes[: len(measurement.processes)]:
            return None
        count = min(len(ones), len(others))  # the best one may have been timed longer
        return ratio(ones[:count], others[:count], min(measurement.processes, best.processes, key=len))

    @property
    def equals(self) -> list[Measurement]:
        """Those that differ from the best by no more than noise could make, or by less than `LEAST_EFFECT`."""
        found = [(m, self.against_best(m)) for m in self.measurements if m.outcome is Outcome.MEASURED]
        return [m for m, interval in found if interval is not None and _as_good(interval)]

    @property
    def noisy(self) -> bool:
        """Whether the machine was too noisy for the figures to be held to."""
        return self.best is not None and self.best.noise > NOISY

    def __str__(self) -> str:
        return html.unescape(self.to_markdown())

    def __repr__(self) -> str:
        return f"Report({self.kind!r}, {self.model!r}, {len(self.measurements)} configurations)"

    def to_json(self) -> str:
        """All of it; `read_report` is the way back. The chosen setup stands in it as ``setup``."""
        content: dict[str, Any] = {"format": FORMAT}
        if self.chosen:
            content["setup"] = self.named(self.chosen).setup.to_json()
        content |= {
            "kind": self.kind,
            "model": self.model,
            "model_digest": self.model_digest,
            "machine": asdict(self.machine) | {"packages": dict(self.machine.packages)},
            "inputs": dict(self.inputs),
            "examples": self.examples,
            "random": self.random,
            "reference": self.reference,
            "limits": asdict(self.limits),
            "objective": self.objective,
            "budget": self.budget if math.isfinite(self.budget) else None,
            "seconds": self.seconds,
            "chosen": self.chosen,
            "notes": list(self.notes),
            "measurements": [m.to_json() for m in self.measurements],
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def to_html(self, comparison: Comparison | None = None) -> str:
        """All of it as a page that needs nothing else, with what `compare` found."""
        from onnx_multi_backend.tuning.page import render

        return render(self, comparison)

    def to_markdown(self, comparison: Comparison | None = None) -> str:
        """The table, for an issue or a README, with what `compare` found."""
        from onnx_multi_backend.tuning.markdown import render

        return render(self, comparison)


def _as_good(interval: Interval) -> bool:
    return math.isfinite(interval.high) and (
        interval.low <= 1 <= interval.high or abs(interval.median - 1) < LEAST_EFFECT
    )


def score(measurement: Measurement, objective: str) -> float:
    """What is to be small for an objective; infinite where it was not measured."""
    value = {
        "latency": measurement.median,
        "throughput": -measurement.per_second,
        "memory": float(measurement.memory) if measurement.memory is not None else math.nan,
    }[objective]
    return math.inf if math.isnan(value) else value


def read_report(text: str, label: str) -> Report:
    """Undo `Report.to_json`.

    Raises
    ------
    OptionError
        It is not a report, or one of another version.
    """
    try:
        values = json.loads(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"it is not a report of format {FORMAT}")
        machine = values["machine"]
        return Report(
            kind=str(values["kind"]),
            model=str(values["model"]),
            model_digest=str(values["model_digest"]),
            machine=Machine(
                str(machine["started"]),
                str(machine["processor"]),
                int(machine["cpus"]),
                str(machine["cpus_why"]),
                {str(k): str(v) for k, v in machine["packages"].items()},
            ),
            inputs={str(k): str(v) for k, v in values["inputs"].items()},
            examples=int(values["examples"]),
            random=bool(values["random"]),
            reference=str(values["reference"]),
            limits=Limits(**values["limits"]),
            objective=str(values["objective"]),
            budget=math.inf if values["budget"] is None else float(values["budget"]),
            seconds=float(values["seconds"]),
            measurements=tuple(map(Measurement.from_json, values["measurements"])),
            chosen=str(values["chosen"]),
            notes=_texts(values["notes"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OptionError) as error:
        raise OptionError(
            f"{label} is not a report that `bench` or `tune` wrote: {type(error).__name__}: {error}. Write one with --report FILE.json."
        ) from error


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))
