# SPDX-License-Identifier: Apache-2.0
"""The bound on a drop holds as often as it says, for the distributions that metrics have."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_multi_backend.calibration.bounds import upper_bound
from onnx_multi_backend.measuring.intervals import median_interval


def bound(drops: np.ndarray) -> float:
    return upper_bound(drops, low=-1, high=1, confidence=0.95)


@pytest.mark.parametrize("samples", [20, 200])
@pytest.mark.parametrize("lost", [0.0, 0.01, 0.05, 0.3])
def test_it_holds_in_95_of_100_resamples(samples: int, lost: float) -> None:
    """Drops are 1 where only the float model was right, -1 where only the int8 model was."""
    rng = np.random.default_rng(int(1000 * lost) + samples)
    gained = lost / 3
    held = 0
    for _ in range(200):
        drops = rng.choice([1.0, -1.0, 0.0], size=samples, p=[lost, gained, 1 - lost - gained])
        held += bound(drops) >= lost - gained
    assert held >= 190


def test_it_holds_where_one_sample_in_a_hundred_loses_all() -> None:
    rng = np.random.default_rng(5)
    held = sum(bound((rng.random(150) < 0.01).astype(float)) >= 0.01 for _ in range(200))
    assert held >= 190


def test_it_gets_closer_with_more_samples() -> None:
    bounds = [bound(np.zeros(count)) for count in (0, 5, 50, 500, 5000)]
    assert bounds[0] == 1
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[3] < 0.015
    rng = np.random.default_rng(0)
    assert 0.1 < bound(rng.normal(0.1, 0.02, 2000)) < 0.12


def test_the_median_lies_in_its_interval_in_95_of_100() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        median, low, high = median_interval(list(rng.exponential(size=21)))
        assert low <= median <= high
        held += low <= np.log(2) <= high
    assert held >= 375
