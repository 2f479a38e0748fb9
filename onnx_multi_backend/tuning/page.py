# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import NamedTuple

from markupsafe import Markup

from onnx_multi_backend import page_style
from onnx_multi_backend.measuring.figures import NONE, error_text
from onnx_multi_backend.tuning import summary
from onnx_multi_backend.tuning.columns import Column, columns_of
from onnx_multi_backend.tuning.command_words import command_words
from onnx_multi_backend.tuning.comparing import Comparison
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.objectives import objective_of
from onnx_multi_backend.tuning.plots import errors, frame, latency, progress
from onnx_multi_backend.tuning.plots.front import pareto_front
from onnx_multi_backend.tuning.plots.marks import mark
from onnx_multi_backend.tuning.plots.svg import element
from onnx_multi_backend.tuning.report import Report
from onnx_multi_backend.tuning.verdicts import comparison_headline, table_of

#: Characters of a reason that a row shows; the rest is folded away.
_REASON = 160


class _Row(NamedTuple):
    number: int
    measurement: Measurement
    cells: list[str]

    @property
    def empty(self) -> bool:
        return all(cell == NONE for cell in self.cells)

    @property
    def why(self) -> str:
        return self.measurement.reason.strip()

    @property
    def short(self) -> str:
        line = " ".join(self.why.split())
        return line if len(line) <= _REASON else line[: _REASON - 1] + "…"


def render(report: Report, comparison: Comparison | None = None) -> str:
    """Return the page, to be written as UTF-8."""
    columns = columns_of(report)
    objective = objective_of(report)
    template = page_style.environment(__package__, "page_files").get_template("report.html.j2")
    best = report.best
    page = template.render(
        report=report,
        best=best,
        summary=summary,
        columns=columns,
        groups=_groups(report, columns),
        front=[(m, objective.text(m), error_text(_largest(m))) for m in pareto_front(report.measurements, objective)],
        latency=_both(latency.draw, report),
        errors=_both(errors.draw, report),
        progress=_both(progress.draw, report),
        sign=_sign,
        setup=json.dumps(best.setup.to_json(), indent=2, ensure_ascii=False) if best is not None else "",
        words=command_words(best.setup) if best is not None else "",
        comparison=comparison,
        compared=None if comparison is None else table_of(comparison),
        comparison_headline=comparison_headline,
        base=page_style.base(),
    )
    # names may hold what is not text
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _groups(report: Report, columns: list[Column]) -> list[tuple[Outcome, list[_Row]]]:
    """The rows of the table by what became of them, in the order of the ranking."""
    rows = [_Row(i, m, [column.cell(report, m) for column in columns]) for i, m in enumerate(report.ranked, 1)]
    return [(outcome, list(found)) for outcome, found in itertools.groupby(rows, lambda row: row.measurement.outcome)]


def _both(draw: Callable[[Report, frame.Size], Markup], report: Report) -> Markup:
    return Markup().join(draw(report, size) for size in (frame.WIDE, frame.NARROW))


def _largest(measurement: Measurement) -> float:
    assert measurement.difference is not None
    return measurement.difference.largest


def _sign(outcome: Outcome) -> Markup:
    """An outcome's mark, for a line of text."""
    return element("svg", mark(outcome, 8, 8), class_="sign", viewBox="0 0 16 16", aria_hidden="true")
