# SPDX-License-Identifier: Apache-2.0
"""The search finds what is best on a machine whose times are known, and keeps to its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from backend_test.unit.tuning.simulated import SimulatedLane, Times, space
from onnx_multi_backend.measuring.intervals import ratio
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning import trials as trials_module
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.contest import Contest
from onnx_multi_backend.tuning.differences import Limits
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.report import LEAST_EFFECT, NOISY
from onnx_multi_backend.tuning.search import Search
from onnx_multi_backend.tuning.space import Space
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials

KNOBS = {
    "threads": (1, 2),
    "spinning": (False,),
    "level": ("basic", "extended"),
    "denormals": (True,),
    "arena": (False,),
}


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SETTLE", "WAKE"):
        monkeypatch.setattr(trials_module, name, 0.0)


def exact(preset: str, options: Mapping[str, Any]) -> float:
    return 0.0


def searched(
    times: Times,
    spaces: Sequence[Space],
    *,
    noise: float = 0.02,
    limits: Limits | None = None,
    errors: Times = exact,
    budget: float = 1000.0,
    static_shapes: bool = False,
    stop_after: int | None = None,
    shared: bool = True,
) -> tuple[Search, Trials]:
    now = [0.0]

    def make_lane() -> SimulatedLane:
        return SimulatedLane(times, noise, errors, now)

    trials = Trials(make_lane, limits or Limits(), examples=1, shared=shared, alone=False, clock=lambda: now[0])
    trials.reference = make_lane().evaluate(1)
    told: list[str] = []

    def tell(trial: Any, best: Any) -> None:
        told.append(trial.candidate.name)
        if stop_after is not None and len(told) >= stop_after:
            raise KeyboardInterrupt

    search = Search(trials, spaces, objective="latency", budget=budget, static_shapes=static_shapes, tell=tell)
    if stop_after is None:
        search.run()
    else:
        with pytest.raises(KeyboardInterrupt):
            search.run()
    return search, trials


def random_times(seed: int) -> Times:
    """Each choice has a factor of its own, and some pairs of choices another."""
    rng = np.random.default_rng(seed)
    factors: dict[Any, float] = {}

    def factor(key: Any) -> float:
        if key not in factors:
            factors[key] = float(np.exp(rng.normal(0, 0.15)))
        return factors[key]

    pairs = {("threads", "spinning"), ("level", "arena")}
    # Drawn in a fixed order, whatever is asked first.
    for preset in ("OrtCpu", "Openvino"):
        factor(preset)
        for name, values in KNOBS.items():
            for value in values:
                factor((preset, name, value))

    def seconds(preset: str, options: Mapping[str, Any]) -> float:
        total = 0.01 * factor(preset)
        for name, value in options.items():
            total *= factor((preset, name, value))
        for one, other in pairs:
            if one in options and other in options:
                total *= 0.97
        return total

    return seconds


@pytest.mark.parametrize("seed", range(20))
def test_the_regret_against_an_exhaustive_search_is_small(seed: int) -> None:
    times = random_times(seed)
    spaces = [space("OrtCpu", KNOBS), space("Openvino", KNOBS)]
    search, _ = searched(times, spaces)
    everything = [c.setup for s in spaces for c in s.everything()]
    best = min(times(setup.preset, setup.options) or 0 for setup in everything)
    assert search.best is not None
    found = times(search.best.candidate.setup.preset, search.best.candidate.setup.options)
    assert found is not None and found / best < 1.05
    assert len(search._by_key) < len(everything) / 2  # far fewer were tried


def test_knobs_that_change_nothing_leave_the_defaults() -> None:
    search, _ = searched(lambda preset, options: 0.01, [space("OrtCpu", KNOBS)], noise=0.05)
    assert search.best is not None and not search.best.candidate.choices


def test_what_does_not_run_is_a_row_with_its_reason() -> None:
    def times(preset: str, options: Mapping[str, Any]) -> float | None:
        return None if preset == "Openvino" or "level" in options else 0.01

    search, trials = searched(times, [space("OrtCpu", KNOBS), space("Openvino", KNOBS)])
    failed = [t for t in trials.tried if t.outcome is Outcome.FAILED]
    assert {t.candidate.setup.preset for t in failed} == {"OrtCpu", "Openvino"}
    assert all("does not run" in t.reason for t in failed)
    assert search.best is not None and search.best.candidate.setup.preset == "OrtCpu"


def less_exact(preset: str, options: Mapping[str, Any]) -> float:
    return {"bf16": 0.01, "f16": 0.001}.get(options.get("precision", ""), 0.0)


def faster_if_less_exact(preset: str, options: Mapping[str, Any]) -> float:
    return 0.01 * {"bf16": 0.4, "f16": 0.6}.get(options.get("precision", ""), 1.0)


PRECISIONS = {"precision": ("bf16", "f16")}


def test_without_a_limit_nothing_below_float32_is_chosen_and_the_gain_is_told() -> None:
    search, trials = searched(faster_if_less_exact, [space("Openvino", KNOBS, PRECISIONS)], errors=less_exact)
    assert search.best is not None and search.best.candidate.float32
    seen = {t.candidate.choices: t for t in trials.tried if t.outcome is Outcome.NOT_ALLOWED}
    bf16 = seen[frozenset({("precision", 'precision="bf16"')})]
    assert bf16.times(search.best) == pytest.approx(0.4, rel=0.1)
    assert bf16.difference is not None and bf16.difference.largest == pytest.approx(0.01)


@pytest.mark.parametrize(("limit", "wanted"), [(0.1, "bf16"), (0.005, "f16"), (0.0001, None)])
def test_a_limit_decides_which_precision_is_taken(limit: float, wanted: str | None) -> None:
    search, trials = searched(
        faster_if_less_exact, [space("Openvino", KNOBS, PRECISIONS)], errors=less_exact, limits=Limits(max_error=limit)
    )
    assert search.best is not None
    assert search.best.candidate.setup.options.get("precision") == wanted
    refused = [t for t in trials.tried if t.outcome is Outcome.INACCURATE]
    assert bool(refused) == (limit < 0.01)
    assert all("is allowed" in t.reason for t in refused)


def test_an_inaccurate_preset_is_not_chosen_though_it_is_faster() -> None:
    def times(preset: str, options: Mapping[str, Any]) -> float:
        return 0.001 if preset == "Openvino" else 0.01

    def errors(preset: str, options: Mapping[str, Any]) -> float:
        return 0.5 if preset == "Openvino" else 0.0

    search, _ = searched(times, [space("OrtCpu", KNOBS), space("Openvino", KNOBS)], errors=errors)
    assert search.best is not None and search.best.candidate.setup.preset == "OrtCpu"


def test_an_interrupted_search_keeps_the_best_so_far() -> None:
    search, _ = searched(random_times(3), [space("OrtCpu", KNOBS), space("Openvino", KNOBS)], stop_after=5)
    assert search.best is not None and not search.measured_again


def test_without_time_the_defaults_are_all_that_is_tried() -> None:
    search, trials = searched(lambda preset, options: 0.01, [space("OrtCpu", KNOBS)], budget=1e-9)
    assert len(trials.tried) == 1 and search.best is trials.tried[0]


@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("budget", [20.0, 60.0])
def test_the_budget_is_kept(seconds: float, budget: float) -> None:
    def times(preset: str, options: Mapping[str, Any]) -> float:
        return seconds * (1.2 if preset == "OrtCpu" else 1.0) * 0.95 ** len(options)

    search, trials = searched(
        times, [space("OrtCpu", KNOBS), space("Openvino", KNOBS)], budget=budget, noise=0.03, shared=False
    )
    assert search.best is not None
    assert trials.seconds <= 1.1 * budget
    if seconds < 0.5:
        assert search.measured_again
        assert search.best.candidate.choices


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (0.007, r"0\.\d\d times the time of \w+, in too few rounds in turn to be sure"),
        (0.02, r"[12]\.\d\d times the time of \w+, roughly"),
    ],
)
def test_what_is_dropped_without_rounds_in_turn_is_not_said_to_be_slower_for_sure(times: float, words: str) -> None:
    lane = SimulatedLane(lambda preset, options: times if options else 0.01, 0.0, exact)
    trials = Trials(lambda: lane, Limits(), examples=1, shared=True, alone=False, clock=lambda: lane.now[0])
    trials.reference = lane.evaluate(1)
    first, other = (
        trials.try_out(Candidate(Setup("OrtCpu", None, options)), limit=1.0) for options in ({}, {"arena": 1})
    )
    Contest(trials, "latency", lambda: 1000.0).drop(other, first)
    assert re.fullmatch(words, other.reason), other.reason


@pytest.mark.parametrize("after", [1, 2])
def test_an_interrupt_before_the_defaults_were_compared_keeps_one_of_them(after: int) -> None:
    search, trials = searched(random_times(1), [space("OrtCpu", KNOBS), space("Openvino", KNOBS)], stop_after=after)
    cut_short = Trial(Candidate(Setup("Openvino", None, {"one": 1})), trials.seconds)
    loose = Trial(Candidate(Setup("Openvino", None, {"two": 2}), float32=False), trials.seconds, quick=1e-9)
    trials.tried += [cut_short, loose]
    search.settle()
    assert search.best is not None and search.best in trials.tried
    assert loose.outcome is Outcome.NOT_ALLOWED
    assert (cut_short.outcome, cut_short.reason) == (Outcome.NOT_TIMED, "the search was interrupted")


@pytest.mark.parametrize("seed", range(10))
def test_equal_configurations_have_no_winner(seed: int) -> None:
    """Rounds are looked at again and again, so an interval that only just leaves out 1 proves nothing."""
    lane = SimulatedLane(lambda preset, options: 0.01, 0.05, exact)
    lane._random = np.random.default_rng(seed)
    trials = Trials(lambda: lane, Limits(), examples=1, shared=True, alone=False, clock=lambda: lane.now[0])
    trials.reference = lane.evaluate(1)
    tried = [trials.try_out(Candidate(Setup("OrtCpu", None, {"arena": arena})), limit=1.0) for arena in (1, 2)]
    order = Contest(trials, "latency", lambda: 1000.0).final(tried)
    interval = ratio(
        [float(np.median(times)) for times in order[1].latency], [float(np.median(times)) for times in order[0].latency]
    )
    assert interval.low <= 1 or interval.median < 1 + LEAST_EFFECT


def final(seed: int, times: Times, *, apart: float = 0.1) -> tuple[Contest, list[Trial]]:
    """Two configurations after a final, on a machine whose processes differ."""
    random, now = np.random.default_rng(seed), [0.0]

    def make_lane() -> SimulatedLane:
        return SimulatedLane(times, 0.02, exact, now, factor=float(np.exp(random.normal(0, apart))), drift=0.0)

    trials = Trials(make_lane, Limits(), examples=1, shared=False, alone=True, clock=lambda: now[0])
    trials.reference = make_lane().evaluate(1)
    tried = [trials.try_out(Candidate(Setup("OrtCpu", None, {"arena": arena})), limit=1.0) for arena in (1, 2)]
    contest = Contest(trials, "latency", lambda: 1000.0)
    return contest, contest.final(tried)


def test_what_a_process_makes_is_no_winner() -> None:
    """One process that happens to be faster than another one says nothing of what runs in it."""
    named = 0
    for seed in range(100):
        contest, (best, other) = final(seed, lambda preset, options: 0.01)
        interval = contest.ratio(other, best)
        named += len(other.processes) > 1 and interval.low > 1 and interval.median > 1 + LEAST_EFFECT
    assert named <= 10


@pytest.mark.parametrize("seed", range(10))
def test_a_real_difference_is_a_winner_all_the_same(seed: int) -> None:
    contest, (best, other) = final(seed, lambda preset, options: 0.01 * (1 + options["arena"] / 10), apart=0.005)
    assert best.candidate.setup.options == {"arena": 1}
    assert len(best.processes) == len(other.processes) == 3
    assert contest.ratio(other, best).low > 1


def test_a_promise_holds_or_is_called_noisy() -> None:
    kept = []
    for seed in range(60):
        _, (best, _) = final(seed, lambda preset, options: 0.01, apart=0.06)
        kept.append(abs(best.median / 0.01 - 1) <= 0.1 or best.measurement().noise > NOISY)
    assert np.mean(kept) >= 0.95


def test_who_is_clearly_slower_is_timed_in_one_process_alone() -> None:
    contest, (first, second) = final(1, lambda preset, options: 0.01 * options["arena"], apart=0.01)
    assert (len(first.processes), len(second.processes)) == (3, 1)
    assert contest.ratio(second, first).median == pytest.approx(2, rel=0.05)


def test_a_precision_that_is_allowed_comes_before_small_gains() -> None:
    """The preset whose defaults are a little slower has the lower precision, and there is no time for all."""

    def times(preset: str, options: Mapping[str, Any]) -> float:
        if options.get("precision") == "bf16":
            return 0.006
        return 0.0100 if preset == "OrtCpu" else 0.0104

    spaces = [space("OrtCpu", KNOBS), space("Openvino", KNOBS, {"precision": ("bf16",)})]
    search, _ = searched(times, spaces, limits=Limits(min_cosine=0.999), budget=6.0, shared=False)
    assert search.best is not None and search.best.candidate.setup.options == {"precision": "bf16"}


def test_a_machine_that_slows_down_is_called_noisy() -> None:
    asked = 0

    def slowing(preset: str, options: Mapping[str, Any]) -> float:
        nonlocal asked
        asked += 1
        return 0.01 if asked < 40 else 0.02

    search, _ = searched(slowing, [space("OrtCpu", KNOBS)], noise=0.005, shared=False)
    assert search.measured_again and search.best is not None
    assert search.best.median == pytest.approx(0.02, rel=0.1)
    assert search.best.measurement().noise > 4 * NOISY


def test_what_graph_optimizations_change_is_noise_for_all() -> None:
    def errors(preset: str, options: Mapping[str, Any]) -> float:
        return {"OrtCpu": 0.002, "Openvino": 0.003}[preset] if "level" not in options else 0.5

    search, trials = searched(random_times(2), [space("OrtCpu", KNOBS), space("Openvino", KNOBS)], errors=errors)
    assert search.best is not None and not {t.outcome for t in trials.tried if not t.candidate.choices} & {
        Outcome.INACCURATE
    }
    assert all(t.outcome is Outcome.INACCURATE for t in trials.tried if dict(t.candidate.choices).get("level"))
