# SPDX-License-Identifier: Apache-2.0
"""Rows of the report; the times are taken as the product takes them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any


def row(measure: str, ours: str, theirs: str, figures: Mapping[str, list[float]], limit: float) -> dict[str, Any]:
    """One line of the report: the ratio of the medians, and what it is made of."""
    medians = {name: statistics.median(figures[name]) for name in (ours, theirs)}
    return {
        "measure": measure,
        "ours": ours,
        "theirs": theirs,
        "ratio": medians[ours] / medians[theirs],
        "limit": limit,
        "unit": "s",
        "ours_median": medians[ours],
        "theirs_median": medians[theirs],
        "ours_quartiles": quartiles(figures[ours]),
        "theirs_quartiles": quartiles(figures[theirs]),
        "rounds": len(figures[ours]),
    }


def quartiles(values: list[float]) -> list[float]:
    """The first and the third."""
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return [low, high]
