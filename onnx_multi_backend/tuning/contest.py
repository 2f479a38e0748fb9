# SPDX-License-Identifier: Apache-2.0
"""Candidates against each other, all in turn in short rounds; who is clearly slower drops out early."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from onnx_multi_backend.measuring.intervals import Interval, ratio
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials, turn_seconds

#: Rounds between two looks at who is to stay; half of them do.
RUNGS = (3, 4, 6)

#: Rounds of a final at least and at most; it ends where all intervals are this narrow, or this far from 1. (They are looked at again and again,
#: so one that only just leaves out 1 proves nothing.)
_LEAST, _MOST, _NARROW, _FAR = 15, 60, 0.03, 0.02

#: In so many processes, if there is time, each candidate of a final is timed: the next one may lay out its memory otherwise, and differ by
#: more than the rounds of one do.
_PROCESSES = 3

#: Rounds without which a process says little.
_FEW = 6

#: Who takes so many times the best one's time, all of the interval, is not timed in another process.
_LOST = 1.25

#: A turn that takes so many times what it should hangs.
_HANGS = 10.0


class Contest:
    """Times candidates for an objective.

    Parameters
    ----------
    trials : Trials
    objective : {"latency", "throughput", "memory"}
    left : callable
        Seconds that are left; rounds end when there are none.
    """

    def __init__(self, trials: Trials, objective: str, left: Callable[[], float]) -> None:
        self._trials = trials
        self._objective = objective
        self._left = left
        self._count = 0

    def figures(self, trial: Trial) -> list[float]:
        """One figure a round, small where it is good: seconds, or bytes."""
        if self._objective == "memory":
            return [float(trial.memory)] if trial.memory is not None else []
        if self._objective == "throughput":
            return [1 / rate for rate in trial.throughput]
        return [statistics.median(times) for times in trial.latency]

    def score(self, trial: Trial) -> float:
        """The median of the figures; before there are any, the seconds of a run."""
        found = self.figures(trial)
        if found:
            return statistics.median(found)
        return trial.quick if self._objective != "memory" else math.inf

    def ratio(self, one: Trial, other: Trial) -> Interval:
        """How many times the other's figure the one's is, over the rounds that both were in; roughly where there were none."""
        ones, others = self.figures(one), self.figures(other)
        count = min(len(ones), len(others))
        rough = self.score(one) / self.score(other)
        if self._objective == "memory":
            return Interval(rough, rough, rough)
        if not count or one.contest != other.contest:
            return Interval(rough, 0.0, math.inf)
        return ratio(ones[:count], others[:count], min(one.processes, other.processes, key=sum))

    def halve(self, trials: Sequence[Trial], *, keep: Trial | None = None, rungs: Sequence[int] = RUNGS) -> list[Trial]:
        """Time candidates, half of them longer, and half of these longer still.

        Parameters
        ----------
        keep : Trial, optional
            Stays in whatever its times are, for the others to be compared with.

        Returns
        -------
        list of Trial
            The last ones that stayed, the best first.
        """
        alive = [trial for trial in trials if trial.alive]
        if self._objective == "memory":
            return self._ordered(alive)
        if self._left() < rungs[0] * self.seconds(alive):
            return self._untimed(alive, keep)
        self._anew(alive)
        for rounds in rungs:
            if not self._rounds(alive, rounds):
                break
            alive = self._ordered(alive)
            if len(alive) <= 2:
                continue
            stay = alive[: max(2, math.ceil(len(alive) / 2))]
            for trial in alive[len(stay) :]:
                if trial is keep:
                    stay.append(trial)
                else:
                    self.drop(trial, stay[0])
            alive = stay
        return self._ordered(alive)

    def final(self, trials: Sequence[Trial]) -> list[Trial]:
        """Time candidates in turn, in the processes that hold them and then in new ones; the best comes first."""
        alive = [trial for trial in trials if trial.alive]
        self._anew(alive)
        if self._objective == "memory":
            return self._ordered(alive)
        afresh, few = self.afresh_seconds(alive), _FEW * self.seconds(alive)
        others = next((n for n in range(_PROCESSES - 1, 0, -1) if self._left() >= few + n * afresh), 0)
        alive = self._until_clear(alive, spare=0.0 if self._trials.shared else others * afresh)
        rounds = min(max((sum(trial.processes) for trial in alive), default=0), 2 * _LEAST)
        behind: list[Trial] = []
        for others in range(_PROCESSES - 2, -1, -1):
            behind = [*(trial for trial in alive[1:] if self.ratio(trial, alive[0]).low > _LOST), *behind]
            alive = [trial for trial in alive if trial not in behind]
            while len(alive) > 1 and self._left() < self.afresh_seconds(alive):
                behind = [alive.pop(), *behind]
            if self._trials.shared or not rounds or not alive or self._left() < self.afresh_seconds(alive):
                break
            for trial in alive:
                self._trials.afresh(trial, limit=self._left())
                trial.processes.append(0)
            self._rounds(alive, rounds, spare=others * self.afresh_seconds(alive))
            alive = self._ordered(alive)
        return [*alive, *(trial for trial in behind if trial.alive)]

    def afresh_seconds(self, trials: Sequence[Trial]) -> float:
        """What it takes to time candidates in new processes, roughly."""
        return self._trials.start_seconds(trials) + _FEW * self.seconds(trials)

    def _until_clear(self, trials: Sequence[Trial], *, spare: float) -> list[Trial]:
        """Time candidates until it is clear how they compare with the best, or until so many seconds are left; the best comes first."""
        alive = list(trials)
        done = 0
        while alive and done < _MOST and self._rounds(alive, 3, spare=spare if done >= _FEW else 0.0):
            done += 3
            alive = self._ordered(alive)
            least = _LEAST if len(alive) > 1 else 2 * _LEAST
            if done >= least and all(_is_clear(self.ratio(trial, alive[0])) for trial in alive[1:]):
                break
        return self._ordered(alive)

    def drop(self, trial: Trial, best: Trial) -> None:
        """Drop a candidate because another one is better."""
        interval = self.ratio(trial, best)
        times = interval.median
        what = {"memory": "memory", "throughput": "time per run"}.get(self._objective, "time")
        noise = ", which noise could make" if interval.low <= 1 <= interval.high < math.inf else ""
        if math.isinf(interval.high):  # one that seems faster is dropped only because that is not sure
            noise = ", roughly" if times >= 1 else ", in too few rounds in turn to be sure"
        trial.lose(best, times, f"{times:.2f} times the {what} of {best.candidate.name}{noise}")
        self._trials.release(trial)

    def _untimed(self, trials: Sequence[Trial], keep: Trial | None) -> list[Trial]:
        """What stays where there is no time: the one to be kept; all of them, by their first runs, where there is none."""
        if keep is None:
            return sorted(trials, key=self.score)
        for trial in trials:
            if trial is not keep:
                trial.end(Outcome.NOT_TIMED, f"no time was left to time it in turn with {keep.candidate.name}")
                self._trials.release(trial)
        return [keep]

    def _ordered(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that are alive, the best first: by the median of their figures, each by those of all others in its round."""
        alive = [trial for trial in trials if trial.alive]
        figures = [self.figures(trial) for trial in alive]
        rounds = min(map(len, figures), default=0)
        if not rounds:
            return sorted(alive, key=self.score)
        logs = np.log([found[:rounds] for found in figures])
        medians = np.median(logs - logs.mean(axis=0), axis=1)
        return [alive[i] for i in np.argsort(medians, kind="stable")]

    def _anew(self, trials: Sequence[Trial]) -> None:
        self._count += 1
        for trial in trials:
            figures = self.figures(trial)
            if len(figures) >= RUNGS[0] and self._objective != "memory":
                trial.earlier.append(statistics.median(figures))
            trial.latency, trial.throughput, trial.processes, trial.contest = [], [], [0], self._count

    def _rounds(self, trials: Sequence[Trial], count: int, *, spare: float = 0.0) -> bool:
        """Some rounds of all, those that are first taking turns; whether there was time for them, and so many seconds are left."""
        for i in range(count):
            alive = [trial for trial in trials if trial.alive]
            if self._left() - spare < self.seconds(alive):
                return False
            for trial in alive if i % 2 == 0 else reversed(alive):
                # That the time ran out is not the fault of the one whose turn it was.
                limit = max(self._left(), _HANGS * self.seconds([trial]))
                self._trials.turn(trial, limit=limit, throughput=self._objective == "throughput")
                trial.processes[-1] += trial.alive
        return True

    def seconds(self, trials: Sequence[Trial]) -> float:
        """What a round of all takes, roughly."""
        if self._objective == "throughput":
            return sum(turn_seconds(trial.median) + max(0.5, 20 * trial.median) for trial in trials)
        return sum(turn_seconds(trial.median) for trial in trials)


def _is_clear(interval: Interval) -> bool:
    return interval.low > 1 + _FAR or interval.high < 1 - _FAR or interval.high - interval.low < _NARROW
