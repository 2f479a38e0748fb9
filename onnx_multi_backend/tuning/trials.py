# SPDX-License-Identifier: Apache-2.0
"""Candidates that were tried, and what was measured of each."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.measuring.clock import SETTLE, WAKE
from onnx_multi_backend.measuring.intervals import median_of
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.differences import Difference, Limits, compare
from onnx_multi_backend.tuning.lane import Prepared, why
from onnx_multi_backend.tuning.measurement import Measurement, Outcome, Placement

#: A run that takes longer wakes its threads in a small part of its time, and needs no other one before it.
_WAKES_ITSELF = 0.25

#: Seconds that an answer may take at least.
_LEAST_LIMIT = 1.0

#: Seconds of a stream that throughput is taken from.
_STREAM = 0.3

#: Seconds of a turn, and one run at least: in many short turns a disturbance falls on all.
_TURN = 0.03


class AnyLane(Protocol):
    """What a `Lane` and a `RemoteLane` have in common."""

    limit: float
    starts: int

    def load_engine(self, preset: str) -> None: ...
    def prepare(self, key: str, setup: Any, model: str) -> Prepared: ...
    def prepare_cached(self, setup: Any, model: str) -> float | None: ...
    def outputs(self, key: str) -> tuple[list[tuple[Any, ...]], list[float]]: ...
    def again(self, key: str) -> tuple[Any, ...]: ...
    def nudged(self, key: str) -> tuple[Any, ...]: ...
    def latency(self, key: str, seconds: float, warm_up: float) -> list[float]: ...
    def throughput(self, key: str, seconds: float, latency: float) -> float: ...
    def elsewhere_time(self, key: str) -> float | None: ...
    def memory(self) -> int | None: ...
    def evaluate(self, count: int) -> list[tuple[Any, ...]]: ...
    def drop(self, key: str) -> None: ...
    def close(self) -> None: ...


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


class Trials:
    """Tries candidates.

    Parameters
    ----------
    make_lane : callable
        Makes what candidates are prepared in.
    shared : bool
        Whether one lane serves all candidates; else each preset has its own.
    alone : bool
        Whether each candidate has its own.
    limits : Limits
    examples : int
        How many inputs the lanes have.
    clock : callable
        Seconds from some point in time.
    started : float, optional
        When it began, by that clock; now when None.

    Attributes
    ----------
    tried : list of Trial
        In the order in which they were tried.
    shared : bool
    start : float
        Seconds that a process took to begin and to import an engine, at most.
    reference : list of tuple, optional
        The outputs to compare with.
    limits : Limits
    examples : int
    """

    def __init__(
        self,
        make_lane: Callable[[], AnyLane],
        limits: Limits,
        *,
        examples: int,
        shared: bool,
        alone: bool,
        clock: Callable[[], float] = time.monotonic,
        started: float | None = None,
    ) -> None:
        self._make_lane = make_lane
        self.shared = shared
        self._alone = alone
        self.start = 0.0
        self._lanes: dict[str, AnyLane] = {}
        self._clock = clock
        self._started = clock() if started is None else started
        self.tried: list[Trial] = []
        self.reference: list[tuple[Any, ...]] | None = None
        self.limits = limits
        self.examples = examples

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._clock() - self._started

    def try_out(self, candidate: Candidate, *, limit: float, judged: bool = True) -> Trial:
        """Prepare a candidate, run it once on each example and compare what comes out.

        Parameters
        ----------
        limit : float
            Seconds that each of these may take; held where the candidate runs in another process.
        judged : bool
            Whether it is held to the limits.
        """
        trial = Trial(candidate, self.seconds)
        self.tried.append(trial)
        self._guarded(trial, limit, lambda: self._first(trial, judged=judged))
        return trial

    def turn(self, trial: Trial, *, limit: float, throughput: bool = False) -> None:
        """Time a candidate for one round."""

        def measure() -> None:
            lane = self._ready(trial)
            time.sleep(SETTLE)
            if throughput:
                trial.throughput.append(
                    lane.throughput(trial.candidate.key, max(_STREAM, 4 * trial.median), trial.median)
                )
            else:
                trial.latency.append(lane.latency(trial.candidate.key, _TURN, _warm_up(trial.median)))

        self._guarded(trial, limit, measure)

    def look_closer(self, trial: Trial, *, limit: float) -> None:
        """Measure what a report shows beside times: memory, the time off the preset's own provider, a prepare from the cache.

        What of it cannot be measured is left out, with a note.
        """
        candidate = trial.candidate

        def memory() -> None:
            trial.memory = self._ready(trial).memory() if trial.memory is None else trial.memory

        def elsewhere() -> None:
            if trial.prepared is not None and trial.prepared.elsewhere > 0:
                trial.elsewhere_time = self._ready(trial).elsewhere_time(candidate.key)

        def cached() -> None:
            trial.prepare_cached = self._ready(trial).prepare_cached(candidate.setup, candidate.model)

        for measure, what in ((memory, "memory"), (elsewhere, "profile"), (cached, "prepare from the cache")):
            try:
                if trial.lane is not None:
                    trial.lane.limit = max(limit, _LEAST_LIMIT)
                measure()
            except OnnxMultiBackendError as error:
                trial.notes += (f"{what} not measured: {why(error)}",)

    def afresh(self, trial: Trial, *, limit: float) -> None:
        """Prepare a candidate again in a new process of its own."""
        if self.shared:
            return
        name, lane = f"{trial.candidate.key} afresh", self._make_lane()
        if name in self._lanes:
            self._lanes[name].close()
        self._lanes[name] = lane
        old, trial.lane, trial.start = trial.prepared, lane, 0
        self._guarded(trial, limit, lambda: self._ready(trial))
        if old is not None and trial.prepared is not None:
            trial.prepared = trial.prepared._replace(warnings=old.warnings)

    def start_seconds(self, trials: Sequence[Trial]) -> float:
        """Seconds that new processes take until these candidates are prepared in them, roughly."""
        return sum(self.start + trial.prepare_seconds for trial in trials)

    def release(self, trial: Trial) -> None:
        """Let go of what a candidate holds."""
        lane = trial.lane
        if lane is not None and self._alone:
            lane.close()
            self._lanes.pop(trial.candidate.key, None)
            trial.lane = None
        elif lane is not None and trial.start == lane.starts:
            lane.limit = _LEAST_LIMIT * 10
            with contextlib.suppress(OnnxMultiBackendError):  # where it dies of that, it has let go too
                lane.drop(trial.candidate.key)
        trial.start = -1

    @contextlib.contextmanager
    def apart(self, *, limit: float) -> Iterator[AnyLane]:
        """A lane beside the others, in a process that is ended afterwards.

        Parameters
        ----------
        limit : float
            Seconds that an answer may take.
        """
        lane = self._make_lane()
        lane.limit = max(limit, _LEAST_LIMIT)
        try:
            yield lane
        finally:
            lane.close()

    def close(self) -> None:
        """End all processes."""
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first(self, trial: Trial, *, judged: bool) -> None:
        lane = self._ready(trial)
        if self._alone:
            trial.memory = lane.memory()
        outputs, times = lane.outputs(trial.candidate.key)
        trial.quick = times[0]
        if self.reference is None:
            return
        difference = Difference()
        for expected, found in zip(self.reference, outputs, strict=True):
            difference = difference.worse(compare(expected, found))
        trial.difference = difference
        if judged and (reason := self.limits.why_not(difference)):
            trial.end(Outcome.INACCURATE, reason)

    def _ready(self, trial: Trial) -> AnyLane:
        """The lane in which a candidate is prepared."""
        candidate = trial.candidate
        if trial.lane is None:
            trial.lane = self._lane_of(candidate)
        lane = trial.lane
        if trial.start != lane.starts:
            before = self.seconds
            lane.load_engine(candidate.setup.preset)
            self.start = max(self.start, self.seconds - before)
            trial.prepared = lane.prepare(candidate.key, candidate.setup, candidate.model)
            trial.start = lane.starts
        return lane

    def _lane_of(self, candidate: Candidate) -> AnyLane:
        name = candidate.key if self._alone else candidate.setup.preset
        if self.shared:
            name = ""
        if name not in self._lanes:
            self._lanes[name] = self._make_lane()
        return self._lanes[name]

    def _guarded(self, trial: Trial, limit: float, measure: Callable[[], object]) -> None:
        if trial.lane is None:
            trial.lane = self._lane_of(trial.candidate)
        trial.lane.limit = max(limit, _LEAST_LIMIT)
        try:
            measure()
        except OnnxMultiBackendError as error:
            trial.end(Outcome.FAILED, why(error))


def turn_seconds(latency: float) -> float:
    """How long a turn is, roughly, of a candidate that takes so long for a run."""
    warm_up = _warm_up(latency)
    return SETTLE + (max(warm_up, latency) if warm_up else 0.0) + max(_TURN, latency)


def _warm_up(latency: float) -> float:
    return WAKE if latency < _WAKES_ITSELF else 0.0
