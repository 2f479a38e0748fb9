# SPDX-License-Identifier: Apache-2.0
"""Times in turn, and what can be said from them."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
import pytest

from onnx_multi_backend.calibration.speed import compare
from onnx_multi_backend.measuring.clock import SETTLE, WAKE, in_turns, one_turn
from onnx_multi_backend.measuring.intervals import by_process, median_interval, median_of, of_two_runs, ratio, spread


def test_everyone_has_a_figure_in_each_round_and_turns_go_both_ways() -> None:
    order: list[str] = []
    figures = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=4, warm_up=0)
    assert "".join(order) == "abbaabba"
    assert {name: len(times) for name, times in figures.items()} == {"a": 4, "b": 4}


def test_threads_are_awake_before_a_turn_is_timed() -> None:
    """Right after a pause an engine's threads may share one processor, for some 25 ms, and runs take two to four times as long."""
    state = {"last": 0.0, "woke": 0.0}

    def drowsy() -> None:
        now = time.perf_counter()
        if now - state["last"] > SETTLE / 2:
            state["woke"] = now
        time.sleep(0.008 if now - state["woke"] < 0.8 * WAKE else 0.002)
        state["last"] = time.perf_counter()

    assert statistics.median(in_turns({"a": drowsy}, rounds=5, repeat=3, warm_up=0, settle=True)["a"]) < 0.006


def test_of_two_calls_the_faster_is_told() -> None:
    found = compare(lambda: time.sleep(0.002), lambda: time.sleep(0.004))
    assert found.faster and found.median < 0.9


def test_a_turn_has_one_call_at_least_and_no_more_than_it_may() -> None:
    calls: list[int] = []
    assert len(one_turn(lambda: calls.append(1), 0.0)) == 1
    assert len(one_turn(lambda: sum(range(20_000)), 10.0, most=5)) == 5


def test_a_median_lies_in_its_interval_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        _, low, high = median_interval(rng.exponential(size=31))
        held += low <= math.log(2) <= high
    assert held >= 0.95 * 400


def test_a_ratio_is_free_of_what_disturbs_both() -> None:
    rng = np.random.default_rng(0)
    drift = np.exp(rng.normal(0, 0.5, 30))
    found = ratio(list(0.9 * drift * np.exp(rng.normal(0, 0.01, 30))), list(drift))
    assert found.median == pytest.approx(0.9, abs=0.01) and found.high < 0.93


def test_few_rounds_say_nothing() -> None:
    assert ratio([1.0, 1.1, 0.9], [2.0, 2.0, 2.0])[1:] == (0.0, math.inf)


@pytest.mark.parametrize("slower", [1.0, 1.1])
def test_two_runs_differ_when_they_differ(slower: float) -> None:
    rng = np.random.default_rng(1)
    old, new = (list(scale * np.exp(rng.normal(0, 0.03, 40))) for scale in (1.0, slower))
    interval, confidence = of_two_runs([new], [old])
    assert interval.low <= interval.median <= interval.high
    assert (interval.low > 1.05) == (slower > 1)
    assert (confidence > 0.99) == (slower > 1)


def test_processes_that_differ_leave_two_runs_the_same() -> None:
    rng = np.random.default_rng(2)

    def run(factors: tuple[float, ...]) -> list[list[float]]:
        return [list(factor * np.exp(rng.normal(0, 0.02, 15))) for factor in factors]

    interval, _ = of_two_runs(run((1.0, 1.15, 1.1)), run((1.0, 0.95, 1.05)))
    assert interval.low < 1.05 and interval.median == pytest.approx(1.1, abs=0.03)
    alone, _ = of_two_runs(run((1.1,)), run((1.0,)))
    assert alone.low > 1.05


def test_rounds_by_process() -> None:
    assert by_process([1.0, 2.0, 3.0], (2, 0, 1)) == [[1.0, 2.0], [3.0]]
    assert by_process([1.0, 2.0, 3.0], (2,)) == by_process([1.0, 2.0, 3.0]) == [[1.0, 2.0, 3.0]]
    assert median_of([1.0, 1.0, 1.0, 5.0, 3.0], (3, 1, 1)) == 3.0


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_an_interval_knows_of_the_next_process(processes: int) -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        rounds = [
            float(f * np.exp(rng.normal(0, 0.01))) for f in np.exp(rng.normal(0, 0.1, processes)) for _ in range(9)
        ]
        found = median_interval(rounds, (9,) * processes)
        held += found.low <= 1 <= found.high
    assert held >= 0.93 * 400


def test_spread_is_relative() -> None:
    assert spread([1.0, 1.0, 1.0]) == 0 and spread([5.0]) == 0
    assert spread([1.0, 2.0, 3.0]) == spread([10.0, 20.0, 30.0]) == pytest.approx(0.5)
    assert spread([1.0, 1.0, 1.2, 1.2, 1.0, 1.0], (2, 2, 2)) == pytest.approx(0.2)
