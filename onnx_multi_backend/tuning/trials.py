# SPDX-License-Identifier: Apache-2.0
"""Candidates are tried: prepared, run, compared and timed, each in its lane."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.measuring.clock import SETTLE, WAKE
from onnx_multi_backend.tuning.any_lane import AnyLane
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.differences import Difference, Limits, compare
from onnx_multi_backend.tuning.lane import why
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.trial import Trial

#: A run that takes longer wakes its threads in a small part of its time, and needs no other one before it.
_WAKES_ITSELF = 0.25

#: Seconds that an answer may take at least.
_LEAST_LIMIT = 1.0

#: Seconds of a stream that throughput is taken from.
_STREAM = 0.3

#: Seconds of a turn, and one run at least: in many short turns a disturbance falls on all.
_TURN = 0.03


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
