# SPDX-License-Identifier: Apache-2.0
"""The finals of a search: the best candidates are measured again beside the defaults, and one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx_multi_backend.tuning.contest import Contest
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials

#: Those that come within this of the winner are measured again beside it; so many at most.
_CLOSE, _FINALISTS = 1.05, 5

#: Among those that are as good within noise, and by no more than this worse, the one closest to a preset's defaults is chosen.
_AS_GOOD = 1.03

#: What may have been dropped and yet be measured again.
ELIGIBLE = (Outcome.MEASURED, Outcome.NOT_BETTER, Outcome.NOT_TIMED)


class Finals:
    """Chooses among the best of a search.

    Parameters
    ----------
    trials : Trials
    contest : Contest
    objective : str
    left : callable
        Seconds that are left.
    """

    def __init__(self, trials: Trials, contest: Contest, objective: str, left: Callable[[], float]) -> None:
        self._trials = trials
        self._contest = contest
        self._objective = objective
        self._left = left
        self._measured: list[Trial] = []

    def winner(self, best: Trial, starts: Sequence[Trial], best_start: Trial | None) -> Trial | None:
        """The one to choose; None where there is no time to measure again.

        Parameters
        ----------
        best : Trial
            The best so far.
        starts : sequence of Trial
            The defaults that were tried.
        best_start : Trial, optional
            The best of these.
        """
        finalists = self._finalists(best, starts, best_start)
        seconds = self._contest.afresh_seconds
        # What the report promises comes from several processes: for the best one there is to be time for a second one.
        while len(finalists) > 1 and self._left() < seconds(finalists) + seconds([best]):
            self._contest.drop(finalists.pop(), best)
        if self._left() < seconds(finalists):
            return None
        if self._objective != "memory":
            for trial in finalists:
                self._trials.afresh(trial, limit=self._left())
        order = self._contest.final(finalists)
        if order:
            best = self._simplest(order)
        for trial in order:
            if trial is not best:
                interval = self._contest.ratio(trial, best)
                trial.lost_to, trial.lost_by = best, interval.median
                if interval.low > 1:
                    trial.lose(best, interval.median, f"{interval.median:.2f} times the time of {best.candidate.name}")
        self._measured = order
        return best if order else None

    def look_closer(self) -> None:
        """Find out more of those that were measured again, as far as the time allows."""
        for trial in self._measured:
            if self._left() > 3 * trial.prepare_seconds:
                self._trials.look_closer(trial, limit=self._left())

    def _finalists(self, best: Trial, starts: Sequence[Trial], best_start: Trial | None) -> list[Trial]:
        """The best one, the defaults that are nearest to it, and what else is close; the least important last."""
        own = [t for t in starts if t.candidate.setup.preset == best.candidate.setup.preset]
        first = [] if best_start is None else [best_start]
        common = [t for t in starts if t.candidate.setup.preset == "OrtCpu"]
        defaults = [t for t in (*first, *own, *common) if t.outcome in ELIGIBLE and t is not best]
        eligible = [t for t in self._trials.tried if t is not best and t.outcome in ELIGIBLE]
        near = {t: times for t in eligible if (times := t.times(best)) is not None and times <= _CLOSE}
        finalists = list(dict.fromkeys((best, *defaults, *sorted(near, key=lambda t: near[t]))))[:_FINALISTS]
        for trial in self._trials.tried:
            if trial.alive and trial not in finalists:
                self._contest.drop(trial, best)
        for trial in finalists:
            trial.revive()
        return finalists

    def _simplest(self, order: Sequence[Trial]) -> Trial:
        """Of those that are as good as the first, within noise, the one that is nearest to a preset's defaults."""
        first = order[0]
        ratios = {t: self._contest.ratio(t, first) for t in order[1:]}
        equal = [t for t, interval in ratios.items() if interval.median <= _AS_GOOD and interval.low <= 1]
        return min([first, *equal], key=lambda t: len(t.candidate.choices))
