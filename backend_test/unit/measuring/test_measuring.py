# SPDX-License-Identifier: Apache-2.0
"""Times in turn, and what can be said from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnx_multi_backend.measuring.clock import in_turns, one_turn
from onnx_multi_backend.measuring.intervals import median_interval, of_two_runs, ratio, spread


def test_everyone_has_a_figure_in_each_round_and_turns_go_both_ways() -> None:
    order: list[str] = []
    figures = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=4, warm_up=0)
    assert "".join(order) == "abbaabba"
    assert {name: len(times) for name, times in figures.items()} == {"a": 4, "b": 4}


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
    interval, confidence = of_two_runs(new, old)
    assert interval.low <= interval.median <= interval.high
    assert (interval.low > 1.05) == (slower > 1)
    assert (confidence > 0.99) == (slower > 1)


def test_spread_is_relative() -> None:
    assert spread([1.0, 1.0, 1.0]) == 0 and spread([5.0]) == 0
    assert spread([1.0, 2.0, 3.0]) == spread([10.0, 20.0, 30.0]) == pytest.approx(0.5)
