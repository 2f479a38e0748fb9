# SPDX-License-Identifier: Apache-2.0
"""Bounds on a mean that hold for few samples of any distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: How finely the bound is searched for, in parts of the range.
_STEPS = 4000

#: The largest part of its capital that a bet may lose.
_STAKE = 0.75


def upper_bound(values: Any, *, low: float, high: float, confidence: float) -> float:
    """What the expected value does not exceed.

    Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024: for each mean that is
    not below the bound, a bettor on lower values has multiplied the stake by 1 / (1 - confidence).

    Parameters
    ----------
    values : array
        Independent draws.
    low, high : float
        Between what they lie.
    confidence : float

    Returns
    -------
    float
        `high` where nothing better can be said.
    """
    x = (np.asarray(values, np.float64) - low) / (high - low)
    count = len(x)
    if not count:
        return high
    # What is known before each draw: a cautious mean and variance.
    order = np.arange(1, count + 1)
    means = (0.5 + np.cumsum(x)) / (order + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (order + 1)
    before = np.concatenate(([0.25], variances[:-1]))
    bets = np.sqrt(2 * math.log(1 / (1 - confidence)) / (before * count))
    candidates = np.linspace(0, 1, _STEPS + 1)[:-1]
    stakes = np.minimum(bets[None, :], _STAKE / (1 - candidates[:, None]))
    capital = np.cumsum(np.log1p(stakes * (candidates[:, None] - x[None, :])), axis=1).max(axis=1)
    refuted = capital >= math.log(1 / (1 - confidence))
    kept = np.flatnonzero(~refuted)
    highest = (kept[-1] + 1) / _STEPS if len(kept) else 0.0
    return float(low + min(highest, 1.0) * (high - low))
