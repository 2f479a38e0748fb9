# SPDX-License-Identifier: Apache-2.0
"""One candidate while it is measured."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from onnx_multi_backend.measuring.intervals import median_of
from onnx_multi_backend.tuning.any_lane import AnyLane
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.differences import Difference
from onnx_multi_backend.tuning.lane import Prepared
from onnx_multi_backend.tuning.measurement import Measurement, Outcome, Placement


@dataclass(eq=False)
class Trial:
    """One candidate while it is measured.

    Attributes
    ----------
    candidate : Candidate
    at : float
        Seconds from the start.
    outcome : Outcome
    reason : str
    quick : float
        Seconds of a run, roughly.
    latency : list of list of float
        Seconds of each run, by rounds.
    processes : list of int
        How many of the rounds of its contest each process took.
    contest : int
        Which rounds it was timed in: those with the same number were timed in turn.
    earlier : list of float
        The median of its figures in each contest before.
    lost_to : Trial, optional
        The one that it was timed beside when it was dropped, and how many times its figure it took.
    """

    candidate: Candidate
    at: float
    outcome: Outcome = Outcome.MEASURED
    reason: str = ""
    prepared: Prepared | None = None
    prepare_cached: float | None = None
    elsewhere_time: float | None = None
    quick: float = float("inf")
    difference: Difference | None = None
    memory: int | None = None
    latency: list[list[float]] = field(default_factory=list)
    throughput: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    lane: AnyLane | None = None
    start: int = 0
    contest: int = 0
    earlier: list[float] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    lost_to: Trial | None = None
    lost_by: float = 1.0

    @property
    def alive(self) -> bool:
        """Whether it runs, and was not dropped."""
        return self.outcome is Outcome.MEASURED

    @property
    def median(self) -> float:
        """Seconds of a run, from the rounds where there are any."""
        rounds = [statistics.median(times) for times in self.latency]
        return median_of(rounds, self.processes) if rounds else self.quick

    @property
    def prepare_seconds(self) -> float:
        """Seconds of its preparation and first run; infinite where it was not prepared."""
        return self.prepared.prepare + self.prepared.first_run if self.prepared else math.inf

    def end(self, outcome: Outcome, reason: str) -> None:
        """Drop it."""
        self.outcome, self.reason = outcome, reason

    def lose(self, other: Trial, times: float, reason: str) -> None:
        """Drop it because another one is so many times as good."""
        self.lost_to, self.lost_by = other, times
        self.end(Outcome.NOT_BETTER, reason)

    def revive(self) -> None:
        """Take it up again."""
        self.lost_to, self.outcome, self.reason = None, Outcome.MEASURED, ""

    def times(self, best: Trial) -> float | None:
        """How many times the best one's figure its own is, by way of those that each was timed beside; None where that is not known."""
        times, trial, seen = 1.0, self, {self}
        while trial is not best:
            if trial.lost_to is None or trial.lost_to in seen:
                return None
            times, trial = times * trial.lost_by, trial.lost_to
            seen.add(trial)
        return times

    def measurement(self, best: Trial | None = None) -> Measurement:
        """What is known of it.

        Parameters
        ----------
        best : Trial, optional
            The one that was chosen.
        """
        prepared = self.prepared
        placement = None
        if prepared is not None and prepared.nodes:
            placement = Placement(prepared.nodes, prepared.elsewhere, self.elsewhere_time)
        rounds = self.latency or ([[self.quick]] if self.quick < float("inf") else [])
        return Measurement(
            name=self.candidate.name,
            setup=self.candidate.setup,
            model=self.candidate.model,
            float32=self.candidate.float32,
            outcome=self.outcome,
            reason=self.reason,
            at=self.at,
            prepare=prepared.prepare if prepared else None,
            prepare_cached=self.prepare_cached,
            first_run=prepared.first_run if prepared else None,
            latency=tuple(map(tuple, rounds)),
            throughput=tuple(self.throughput),
            processes=tuple(self.processes),
            memory=self.memory,
            placement=placement,
            difference=self.difference,
            contest=self.contest,
            earlier=tuple(self.earlier),
            times_best=self.times(best) if best is not None else None,
            adaptations=prepared.adaptations if prepared else 0,
            notes=(*(prepared.warnings if prepared else ()), *self.notes),
        )
