# SPDX-License-Identifier: Apache-2.0
"""A comparison in words and as a table."""

from __future__ import annotations

from typing import NamedTuple

from onnx_multi_backend.measuring.figures import NONE, ratio_text, share_text, significant
from onnx_multi_backend.measuring.intervals import Interval
from onnx_multi_backend.tuning.comparing import WORSE, Comparison, Row, Verdict
from onnx_multi_backend.tuning.measurement import Measurement
from onnx_multi_backend.tuning.objectives import OBJECTIVES, ran

_OF_MEMORY = {Verdict.SLOWER: "more memory", Verdict.FASTER: "less memory"}


class Line(NamedTuple):
    """A row of the table: what is worse comes first."""

    name: str
    verdict: str
    worse: bool
    old: str
    new: str
    ratio: str
    confidence: str


HEADERS = ("Configuration", "Verdict", "Old", "New", "New / old", "Slower with")


def table_of(comparison: Comparison) -> list[Line]:
    """A line for each configuration: what is worse first, what is as it was last."""
    order = list(Verdict)
    rows = sorted(comparison.rows, key=lambda row: (order.index(row.verdict), -row.ratio.median if row.ratio else 0.0))
    return [_line(comparison, row) for row in rows]


def comparison_headline(comparison: Comparison) -> str:
    """How many came to which verdict."""
    found = {verdict: len(comparison.of(verdict)) for verdict in Verdict}
    words = [f"{count} {verdict_words(comparison, verdict)}" for verdict, count in found.items() if count]
    return f"Against the report of {comparison.started}: {', '.join(words) or 'nothing to compare'}"


def verdict_words(comparison: Comparison, verdict: Verdict) -> str:
    """A verdict as it is said of the objective."""
    return _OF_MEMORY.get(verdict, str(verdict)) if comparison.objective == "memory" else str(verdict)


def _line(comparison: Comparison, row: Row) -> Line:
    return Line(
        row.name,
        verdict_words(comparison, row.verdict),
        row.verdict in WORSE,
        _figure(comparison, row.old),
        _figure(comparison, row.new),
        NONE if row.ratio is None else _ratio(row.ratio),
        NONE if row.confidence is None else share_text(row.confidence),
    )


def _ratio(ratio: Interval) -> str:
    return significant(ratio.median) if ratio.low == ratio.high else ratio_text(ratio)


def _figure(comparison: Comparison, measurement: Measurement | None) -> str:
    objective = OBJECTIVES[comparison.objective]
    if measurement is None:
        return NONE
    return objective.text(measurement) if ran(measurement, objective) else str(measurement.outcome)
