# SPDX-License-Identifier: Apache-2.0
"""The search for the best configuration: from each preset's defaults, one knob after another, as long as it gets better."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx_multi_backend import option_words
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.contest import Contest
from onnx_multi_backend.tuning.differences import widened
from onnx_multi_backend.tuning.finals import ELIGIBLE, Finals
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.space import Space
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials

#: Presets whose defaults take so many times the best one's are not looked into.
_HOPELESS = 2.5

#: A first look at a candidate that takes so many times the time of the one it is to replace ends it, where a run is so many seconds long.
_CLEARLY_SLOWER, _LONG = 1.7, 0.002

#: What an improvement is: the median of a ratio, and the upper end of its interval.
_BETTER, _SURELY = 0.99, 1.02

#: A candidate hangs when it takes so many times what the others took, and so many seconds.
_PATIENCE, _LEAST_PATIENCE = 20.0, 5.0

#: The share of the budget that finals may take.
_FINALS = 0.35


class Search:
    """Searches some spaces.

    Parameters
    ----------
    trials : Trials
    spaces : sequence of Space
        Each preset, on each variant of the model.
    objective : str
    budget : float
        Seconds, from the start of `trials`.
    static_shapes : bool
        Whether a configuration may be chosen that takes the shapes of the examples alone.
    tell : callable
        Hears of each trial.

    Attributes
    ----------
    best : Trial, optional
        The best so far.
    measured_again : bool
        Whether it was measured in a new process beside the others that are close.
    """

    def __init__(
        self,
        trials: Trials,
        spaces: Sequence[Space],
        *,
        objective: str,
        budget: float,
        static_shapes: bool,
        tell: Callable[[Trial, Trial | None], None],
    ) -> None:
        self._trials = trials
        self._spaces = spaces
        self._objective = objective
        self._budget = budget
        self._static_shapes = static_shapes
        self._tell = tell
        self._costs: list[float] = []
        self._by_key: dict[str, Trial] = {}
        self._contest = Contest(trials, objective, self._left)
        self._in_final = False
        self._until = math.inf
        self.best: Trial | None = None
        self.measured_again = False
        self._best_start: Trial | None = None

    def run(self) -> None:
        """Search until nothing gets better or the time is up; `best` is the winner."""
        starts = {space.start.key: space for space in self._spaces if self._allowed(space.start)}
        tried = [trial for space in starts.values() if (trial := self._try(space.start)) is not None]
        order = self._contest.halve([t for t in tried if t.alive], rungs=(3,))
        self.best = self._best_start = next(iter(order), None)
        for trial in [t for t in order if self._contest.ratio(t, order[0]).median > _HOPELESS]:
            self._contest.drop(trial, order[0])
        self._look_at_loose()
        spaces = self._with_precisions([(starts[t.candidate.key], t) for t in order if t.alive])
        for i, (space, trial) in enumerate(spaces):
            # The first one is the most promising, and may take twice as long as each of the others.
            self._until = self._trials.seconds + self._left() * 2 / (1 + len(spaces) - i)
            improved = self._improve(space, trial)
            self._until = math.inf
            self._beside_best(improved)
        self._final()

    def settle(self) -> None:
        """Name the best where the search was interrupted: before the defaults were compared, the one whose first runs were fastest."""
        for trial in [trial for trial in self._trials.tried if trial.alive]:
            if math.isinf(trial.quick):
                trial.end(Outcome.NOT_TIMED, "the search was interrupted")
            elif not self._allowed(trial.candidate):
                trial.end(Outcome.NOT_ALLOWED, self._why_not_allowed(trial.candidate))
        alive = [trial for trial in self._trials.tried if trial.alive and trial.prepared is not None]
        if self.best is None and alive:
            self.best = min(alive, key=lambda trial: trial.quick)

    def _with_precisions(self, starts: Sequence[tuple[Space, Trial]]) -> list[tuple[Space, Trial]]:
        """Of each space its start, or what computes in less than float32 if that is allowed and better: nothing else gains as much."""
        spaces = {trial: space for space, trial in starts}
        for space, start in starts:
            loose = [c for c in space.neighbours(start.candidate) if not c.float32 and self._allowed(c)]
            spaces |= dict.fromkeys(self._tried(loose, beside=start), space)
        if len(spaces) == len(starts):
            return list(starts)
        found: dict[int, tuple[Space, Trial]] = {}
        for trial in self._contest.halve(list(spaces), keep=self.best, rungs=(6,)):
            space, first = found.setdefault(id(spaces[trial]), (spaces[trial], trial))
            if first is not trial:
                self._contest.drop(trial, first)
        self.best = next((trial for _, trial in found.values()), self.best)
        return list(found.values())

    def _improve(self, space: Space, incumbent: Trial) -> Trial:
        while self._left() > 0:
            found = self._tried(
                [c for c in space.neighbours(incumbent.candidate) if self._allowed(c)], beside=incumbent
            )
            if not found:
                break
            alive = self._contest.halve([incumbent, *found], keep=incumbent)
            better = [t for t in alive if t is not incumbent and self._is_better(t, incumbent)]
            for trial in alive:
                if trial is not incumbent and trial not in better:
                    self._contest.drop(trial, incumbent)
            if not better or not incumbent.alive:
                break
            leads = self.best is incumbent
            if leads:
                self.best = better[0]
            for trial in (incumbent, *better[1:]):
                self._contest.drop(trial, better[0])
            incumbent = self._combined(space, better)
            if leads:
                self.best = incumbent
        return incumbent

    def _beside_best(self, trial: Trial) -> None:
        """Time the best of a space beside the best of those before: times that were not taken in turn are not compared."""
        best = self.best
        if best is None or trial is best or not trial.alive:
            return
        if trial not in self._contest.halve([best, trial], keep=best, rungs=(6,)):
            return
        interval = self._contest.ratio(trial, best)
        loser = best if interval.median < 1 and math.isfinite(interval.high) else trial
        self.best = trial if loser is best else best
        self._contest.drop(loser, self.best)

    def _combined(self, space: Space, better: Sequence[Trial]) -> Trial:
        """The best of some improvements, with the others added one by one as long as that helps."""
        best = better[0]
        for other in better[1:]:
            merged = space.made({**dict(other.candidate.choices), **dict(best.candidate.choices)})
            both = self._tried([merged], beside=best) if merged.key not in self._by_key else []
            if both:
                first, *rest = self._contest.halve([best, *both], keep=best, rungs=(6,)) or [best]
                if first is not best and self._is_better(first, best):
                    self._contest.drop(best, first)
                    best = first
                else:
                    for trial in (first, *rest):
                        if trial is not best:
                            self._contest.drop(trial, best)
        return best

    def _is_better(self, trial: Trial, incumbent: Trial) -> bool:
        interval = self._contest.ratio(trial, incumbent)
        return interval.median < _BETTER and interval.high < _SURELY

    def _look_at_loose(self) -> None:
        """Try what the user has not allowed beside the best of the defaults, to report what it would gain."""
        best = self.best
        if best is None:
            return
        candidates = [space.start for space in self._spaces if not self._allowed(space.start)]
        for space in self._spaces:
            if space.start.setup.preset == best.candidate.setup.preset and space.start.model == best.candidate.model:
                candidates += [c for c in space.neighbours(best.candidate) if not self._allowed(c)]
        found = []
        for candidate in candidates:
            trial = self._try(candidate)
            if trial is not None and trial.alive:
                found.append(trial)
        if found:
            self._contest.halve([best, *found], keep=best, rungs=(6,))
        for trial in found:
            if trial.outcome in ELIGIBLE:
                trial.lose(best, self._contest.ratio(trial, best).median, "")
                trial.end(Outcome.NOT_ALLOWED, self._why_not_allowed(trial.candidate))
                self._trials.release(trial)

    def _final(self) -> None:
        """Measure the best ones once more, each in a new process and beside the defaults, and choose."""
        self._in_final = True
        if self.best is None:
            return
        starts = [self._by_key[space.start.key] for space in self._spaces if space.start.key in self._by_key]
        finals = Finals(self._trials, self._contest, self._objective, self._left)
        winner = finals.winner(self.best, starts, self._best_start)
        if winner is not None:
            self.best = winner
            self.measured_again = True
            finals.look_closer()

    def _tried(self, candidates: Sequence[Candidate], *, beside: Trial) -> list[Trial]:
        """Try candidates that were not tried before; those that are near enough to `beside` to be timed."""
        found = []
        for candidate in candidates:
            trial = self._try(candidate)
            if trial is None or not trial.alive:
                continue
            times = trial.quick / beside.quick
            if self._objective == "latency" and times > _CLEARLY_SLOWER and trial.quick > _LONG:
                trial.lose(beside, times, f"about {times:.1f} times the time of {beside.candidate.name}")
                self._trials.release(trial)
                continue
            found.append(trial)
        return found

    def _try(self, candidate: Candidate) -> Trial | None:
        """Try a candidate once; None where there is no time, or it was tried before."""
        if candidate.key in self._by_key or (self._costs and self._left() < statistics.median(self._costs)):
            return None
        before = self._trials.seconds
        judged = self._allowed(candidate)
        trial = self._trials.try_out(candidate, limit=self._patience(), judged=judged)
        self._by_key[candidate.key] = trial
        took, own = self._trials.seconds - before, trial.prepare_seconds + self._trials.examples * trial.quick
        if trial.prepared is None:
            own = took
        self._costs.append(own)
        self._allow_for_optimizations(trial)
        self._tell(trial, self.best)
        return trial

    def _allow_for_optimizations(self, trial: Trial) -> None:
        """ONNX Runtime's defaults are float32 too: what they differ by from the reference is noise of float32."""
        limits, difference = self._trials.limits, trial.difference
        if (
            limits.given
            or difference is None
            or trial.candidate.setup != Setup("OrtCpu")
            or not trial.candidate.float32
        ):
            return
        self._trials.limits = replace(limits, noise=widened(limits.noise, difference))
        if trial.outcome is Outcome.INACCURATE and not self._trials.limits.why_not(difference):
            trial.revive()

    def _patience(self) -> float:
        """Seconds until a candidate is taken to hang: many times what others took, and no more than are left."""
        if not self._costs:
            return self._left()
        return min(self._left(), max(_LEAST_PATIENCE, self._trials.start + _PATIENCE * statistics.median(self._costs)))

    def _allowed(self, candidate: Candidate) -> bool:
        exact = candidate.float32 or (self._trials.limits.given and self._trials.reference is not None)
        return exact and (candidate.any_shape or self._static_shapes)

    def _why_not_allowed(self, candidate: Candidate) -> str:
        if not candidate.float32 and self._trials.reference is None:
            return "it computes in less than float32, and without a reference no limit can be checked"
        if not candidate.float32 and not self._trials.limits.given:
            return f"it computes in less than float32: {option_words.named('min_cosine')} or {option_words.named('max_error')} allows that"
        return f"it takes inputs of these shapes alone: {option_words.given('static_shapes', True)} allows that"

    def _left(self) -> float:
        """Seconds until the search has to end: until the finals, and in them until the budget is spent."""
        left = self._budget - self._trials.seconds
        if self._in_final:
            return left
        best = self.best
        reserve = 3 * self._contest.afresh_seconds([best, best]) if best is not None else 0.0
        return min(left - min(reserve, _FINALS * self._budget), self._until - self._trials.seconds)
