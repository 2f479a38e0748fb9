# SPDX-License-Identifier: Apache-2.0
"""The figures of a configuration, as tables show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from onnx_multi_backend.measuring.figures import (
    NONE,
    cosine_text,
    error_text,
    ratio_text,
    seconds_text,
    share_text,
    significant,
)
from onnx_multi_backend.tuning.measurement import Measurement
from onnx_multi_backend.tuning.objectives import OBJECTIVES, memory_text, times_the_best
from onnx_multi_backend.tuning.report import Report


class Column(NamedTuple):
    """A column: its heading, what that means, and the cell of a measurement."""

    name: str
    meaning: str
    cell: Callable[[Report, Measurement], str]


#: How much slower a configuration is than the best one: "vs smallest" where memory is the objective, "vs chosen" of a search.
TIMES_THE_BEST = "vs fastest"


def _times_best(report: Report, m: Measurement) -> str:
    if m is report.best:
        return "1 (chosen)" if report.kind == "tune" else "1 (best)"
    found = times_the_best(report, m)
    return NONE if found is None else ratio_text(found)


COLUMNS = (
    Column(
        "Median",
        "the median of the rounds' medians, of each process first",
        lambda _, m: seconds_text(m.median),
    ),
    Column(
        TIMES_THE_BEST,
        "how many times what the best one takes, with an interval of 95 % confidence: at 1.25 it is a quarter more",
        _times_best,
    ),
    Column("p90", "the time that 90 % of all runs do not exceed", lambda _, m: seconds_text(m.quantile(0.9))),
    Column("p99", "the time that 99 % of all runs do not exceed", lambda _, m: seconds_text(m.quantile(0.99))),
    Column(
        "Spread",
        "the interquartile range of the rounds by their median, or how far a process or an earlier part of the search is from it",
        lambda _, m: share_text(m.noise) if len(m.latency) > 1 else NONE,
    ),
    Column("Runs/s", "runs per second with many under way", lambda _, m: significant(m.per_second)),
    Column("Memory", "peak resident memory of a process that does nothing else", lambda _, m: memory_text(m)),
    Column(
        "Largest error",
        "from the reference",
        lambda _, m: NONE if m.difference is None else error_text(m.difference.largest),
    ),
    Column(
        "Cosine",
        "the least similarity to the reference",
        lambda _, m: NONE if m.difference is None else cosine_text(m.difference.cosine),
    ),
    Column("Prepare", "seconds to prepare the model without a cache", lambda _, m: seconds_text(m.prepare)),
    Column("Cached", "the same from a filled cache", lambda _, m: seconds_text(m.prepare_cached)),
    Column("First run", "the first run after that", lambda _, m: seconds_text(m.first_run)),
    Column(
        "Nodes elsewhere",
        "share of the nodes that do not run on the preset's own provider",
        lambda _, m: NONE if m.placement is None else share_text(m.placement.elsewhere),
    ),
    Column(
        "Time elsewhere",
        "share of the time that these take",
        lambda _, m: NONE if m.placement is None else share_text(m.placement.elsewhere_time),
    ),
)


def columns_of(report: Report, columns: Sequence[Column] = COLUMNS) -> list[Column]:
    """Those that have a figure of some measurement; that of the objective is first."""
    found = [c for c in columns if any(c.cell(report, m) != NONE for m in report.measurements)]
    first = {"latency": "Median", "throughput": "Runs/s", "memory": "Memory"}[report.objective]
    order = [first, TIMES_THE_BEST]
    found = sorted(found, key=lambda c: order.index(c.name) if c.name in order else len(order))
    # the setup that tune chooses has the fewest options of those that noise makes equal
    name = "vs chosen" if report.kind == "tune" else f"vs {OBJECTIVES[report.objective].better}"
    return [c._replace(name=name) if c.name == TIMES_THE_BEST else c for c in found]
