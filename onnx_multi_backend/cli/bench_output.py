# SPDX-License-Identifier: Apache-2.0
"""What ``bench`` and ``tune`` print of a report."""

from __future__ import annotations

import math
import sys

from onnx_multi_backend.cli import console
from onnx_multi_backend.measuring.figures import NONE, cosine_text, error_text
from onnx_multi_backend.tuning import summary
from onnx_multi_backend.tuning.columns import COLUMNS, TIMES_THE_BEST, columns_of
from onnx_multi_backend.tuning.command_words import command_words
from onnx_multi_backend.tuning.comparing import Comparison, Verdict
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.objectives import objective_of, ran
from onnx_multi_backend.tuning.report import Report
from onnx_multi_backend.tuning.verdicts import comparison_headline, table_of

#: Rows of the table, lines of failures and of what a looser limit gains.
_ROWS, _FAILURES, _GAINS, _CHANGES = 10, 8, 3, 10
_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def show(report: Report, comparison: Comparison | None = None) -> None:
    """Print the result, the ten best, why others failed, and what a looser limit would gain."""
    _show_result(report)
    _show_table(report)
    _show_failures(report)
    for gain in summary.gains(report)[:_GAINS]:
        console.line(f"with a looser limit: {gain}")
    for notice in summary.notices(report):
        console.line(f"note: {console.one_line(notice)}")
    if comparison is not None:
        _show_comparison(comparison)


def _show_result(report: Report) -> None:
    console.heading(summary.headline(report))
    best = report.best
    if best is None:
        return
    console.line(f"{summary.figure(report, best)}.", indent=2)
    for words in summary.advantages(report):
        console.line(words, indent=2)
    if report.equals:
        console.line(summary.no_winner(report), indent=2)
    if report.kind == "tune":
        console.line(command_words(best.setup), indent=2)
        if best.model != "as given":
            console.line(f"with the model {best.model}", indent=2)


def _show_table(report: Report) -> None:
    objective = objective_of(report)
    shown = [m for m in report.ranked if ran(m, objective)][:_ROWS]
    if not shown:
        return
    slowest = max(objective.cost(m) for m in shown)
    headers, rows = [objective.header, "Configuration"], [[objective.text(m), m.name] for m in shown]
    more = columns_of(report, [c for c in COLUMNS if c.name in (TIMES_THE_BEST, "Spread")])
    headers += [column.name for column in more]
    rows = [[*row, *(c.cell(report, m) for c in more)] for row, m in zip(rows, shown, strict=True)]
    if any(m.difference is not None for m in shown):
        headers += ["Error", "Cosine"]
        rows = [[*row, *_error(m)] for row, m in zip(rows, shown, strict=True)]
    if any(m.outcome is not Outcome.MEASURED for m in shown):
        headers.append("Outcome")
        rows = [[*row, str(m.outcome)] for row, m in zip(rows, shown, strict=True)]
    if console.width() >= 80:
        headers.insert(1, "")
        for row, m in zip(rows, shown, strict=True):
            row.insert(1, bar(objective.cost(m) / slowest))
    console.table(headers, rows)
    total = len(report.measurements)
    if total > len(shown):
        console.line(f"and {total - len(shown)} more; {total} in all: {summary.counts(report)}")


def _error(measurement: Measurement) -> list[str]:
    difference = measurement.difference
    return [NONE, NONE] if difference is None else [error_text(difference.largest), cosine_text(difference.cosine)]


def bar(share: float) -> str:
    """A bar of block characters, a part of the longest one; of signs that any terminal has where these cannot be printed."""
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    eighths = max(1, round(share * _BAR * 8))
    try:
        _EIGHTHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _show_failures(report: Report) -> None:
    failed = [m for m in report.ranked if m.outcome is Outcome.FAILED]
    for m in failed[:_FAILURES]:
        console.line(_short(f"failed: {m.name}: {m.reason or 'no reason is known'}"))
    if len(failed) > _FAILURES:
        console.line(f"and {len(failed) - _FAILURES} more that failed")


def _show_comparison(comparison: Comparison) -> None:
    console.line()
    console.heading(comparison_headline(comparison))
    for what, old, new in comparison.changes:
        console.line(f"{what}: {old} -> {new}", indent=2)
    changed = [line for line in table_of(comparison) if line.verdict != Verdict.SAME]
    for line in changed[:_CHANGES]:
        ratio = f", {line.ratio} of the old" if line.ratio != NONE else ""
        console.line(f"{line.verdict}: {line.name}: {line.old} -> {line.new}{ratio}", indent=2)
    if len(changed) > _CHANGES:
        console.line(f"and {len(changed) - _CHANGES} more", indent=2)


def _short(text: str) -> str:
    """A text on one line of the terminal; in a pipe not cut."""
    text, width = console.one_line(text), console.width()
    return text if width <= 0 or len(text) <= width else text[: width - 1] + "…"
