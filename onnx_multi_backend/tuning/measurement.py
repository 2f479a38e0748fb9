# SPDX-License-Identifier: Apache-2.0
"""What was measured of one configuration."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from onnx_multi_backend.measuring.intervals import Interval, median_interval, median_of, spread
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.differences import Difference


class Outcome(StrEnum):
    """What became of a configuration."""

    MEASURED = "measured"
    #: Tried, and dropped because another one is faster, or as fast within noise, or needs less memory.
    NOT_BETTER = "not better"
    #: No time was left to time it in turn with another, or to run it.
    NOT_TIMED = "not timed"
    #: Its results are too far from the reference's.
    INACCURATE = "inaccurate"
    #: Measured, but it asks for what the user has not allowed: less than float32, or shapes that are fixed.
    NOT_ALLOWED = "not allowed"
    #: It does not run.
    FAILED = "failed"


@dataclass(frozen=True)
class Placement:
    """Where a model's nodes run.

    Attributes
    ----------
    nodes : mapping of str to int
        How many nodes of the compiled model each execution provider runs.
    elsewhere : float
        The share of them that does not run on the preset's own provider.
    elsewhere_time : float, optional
        The share of the time that these take, by the engine's own profile; None where it has none.
    """

    nodes: Mapping[str, int]
    elsewhere: float
    elsewhere_time: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One configuration.

    Attributes
    ----------
    name : str
        ``OrtCpu``, ``Openvino, 1 thread, bf16``.
    setup : Setup
    model : str
        ``as given``; or ``int8 (ort)``, ``int8 (openvino)``.
    float32 : bool
        Whether nothing is computed in less than the model says.
    outcome : Outcome
    reason : str
        Why it was dropped, or does not run.
    at : float
        Seconds from the start to when it was first tried.
    prepare, prepare_cached, first_run : float, optional
        Seconds: without a cache; from a filled cache, None where the preset keeps nothing; of the first run.
    latency : tuple of tuples of float
        Seconds of each run, by rounds.
    throughput : tuple of float
        Runs per second through `run_many`, one figure a round.
    processes : tuple of int
        How many of the rounds for the objective each process took, one after another.
    memory : int, optional
        The most resident memory, in bytes, of a process that does nothing else.
    placement : Placement, optional
    difference : Difference, optional
        From the reference.
    contest : int
        Which rounds it was timed in: those with the same number were timed in turn.
    earlier : tuple of float
        Medians of the rounds in which it was timed before, in seconds.
    times_best : float, optional
        How many times the chosen one's figure its own was, in rounds that both were timed in, or by way of a third. Times that were taken at
        different times are not compared.
    adaptations : int
    """

    name: str
    setup: Setup
    model: str = "as given"
    float32: bool = True
    outcome: Outcome = Outcome.MEASURED
    reason: str = ""
    at: float = 0.0
    prepare: float | None = None
    prepare_cached: float | None = None
    first_run: float | None = None
    latency: tuple[tuple[float, ...], ...] = ()
    throughput: tuple[float, ...] = ()
    processes: tuple[int, ...] = ()
    memory: int | None = None
    placement: Placement | None = None
    difference: Difference | None = None
    contest: int = 0
    earlier: tuple[float, ...] = ()
    times_best: float | None = None
    adaptations: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def rounds(self) -> list[float]:
        """The median of each round, in seconds."""
        return [statistics.median(times) for times in self.latency]

    @property
    def median(self) -> float:
        """Seconds of a run: the median of the rounds, by processes; NaN where none was timed."""
        return median_of(self.rounds, self.processes) if self.latency else math.nan

    @property
    def interval(self) -> Interval:
        """That median, and what it lies between with a confidence of 95 %."""
        nothing = Interval(math.nan, math.nan, math.nan)
        return median_interval(self.rounds, self.processes) if self.latency else nothing

    def quantile(self, share: float) -> float:
        """The seconds that so large a share of all runs does not exceed."""
        runs = [seconds for times in self.latency for seconds in times]
        return float(np.quantile(runs, share)) if runs else math.nan

    @property
    def noise(self) -> float:
        """How far times differ, whichever is most: the interquartile range of the rounds, a process, or `earlier` ones; of their median."""
        rounds = [1 / rate for rate in self.throughput] or self.rounds
        if not rounds:
            return 0.0
        now = median_of(rounds, self.processes)
        return max([spread(rounds, self.processes), *(abs(before / now - 1) for before in self.earlier)])

    @property
    def per_second(self) -> float:
        """Runs per second: the median of the rounds, by processes; NaN where they were not counted."""
        return median_of(self.throughput, self.processes) if self.throughput else math.nan

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it; infinities and NaN are strings."""
        return {
            "name": self.name,
            "setup": self.setup.to_json(),
            "model": self.model,
            "float32": self.float32,
            "outcome": str(self.outcome),
            "reason": self.reason,
            "at": self.at,
            "prepare": self.prepare,
            "prepare_cached": self.prepare_cached,
            "first_run": self.first_run,
            "latency": [list(times) for times in self.latency],
            "throughput": list(self.throughput),
            "processes": list(self.processes),
            "memory": self.memory,
            "placement": None
            if self.placement is None
            else {
                "nodes": dict(self.placement.nodes),
                "elsewhere": self.placement.elsewhere,
                "elsewhere_time": self.placement.elsewhere_time,
            },
            "difference": None
            if self.difference is None
            else {name: _number(getattr(self.difference, name)) for name in ("largest", "relative", "cosine", "noise")},
            "contest": self.contest,
            "earlier": list(self.earlier),
            "times_best": self.times_best,
            "adaptations": self.adaptations,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Measurement:
        """Undo `to_json`. Raises KeyError, TypeError or ValueError where it is something else."""
        placement, difference = values["placement"], values["difference"]
        return cls(
            name=str(values["name"]),
            setup=Setup.from_json(values["setup"]),
            model=str(values["model"]),
            float32=bool(values["float32"]),
            outcome=Outcome(values["outcome"]),
            reason=str(values["reason"]),
            at=float(values["at"]),
            prepare=_optional(values["prepare"]),
            prepare_cached=_optional(values["prepare_cached"]),
            first_run=_optional(values["first_run"]),
            latency=tuple(tuple(float(s) for s in times) for times in values["latency"]),
            throughput=tuple(float(s) for s in values["throughput"]),
            processes=tuple(map(int, values.get("processes", ()))),  # reports of before have none
            memory=None if values["memory"] is None else int(values["memory"]),
            placement=None if placement is None else Placement(**placement),
            difference=None if difference is None else Difference(**{k: float(v) for k, v in difference.items()}),
            contest=int(values["contest"]),
            earlier=tuple(map(float, values.get("earlier", ()))),
            times_best=_optional(values["times_best"]),
            adaptations=int(values["adaptations"]),
            notes=tuple(map(str, values["notes"])),
        )


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)
