# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown: for an issue or a README."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from onnx_multi_backend.page_style.markdown_text import plain
from onnx_multi_backend.tuning import summary
from onnx_multi_backend.tuning.columns import COLUMNS, TIMES_THE_BEST, columns_of
from onnx_multi_backend.tuning.command_words import command_words
from onnx_multi_backend.tuning.comparing import Comparison
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.report import Report
from onnx_multi_backend.tuning.verdicts import HEADERS, comparison_headline, table_of

#: The columns that a reader of an issue looks for.
_COLUMNS = ("Median", TIMES_THE_BEST, "p99", "Runs/s", "Memory", "Largest error", "Cosine", "Prepare")

#: Rows of a table; a long search has more.
_MOST = 20


def render(report: Report, comparison: Comparison | None = None) -> str:
    """Return the report as Markdown."""
    sections = [
        f"## {plain(summary.headline(report))}",
        _result(report),
        "\n".join(f"> {plain(notice, 1000)}\n" for notice in summary.notices(report)).rstrip(),
        _configurations(report),
        _gains(report),
        "" if comparison is None else _comparison(comparison),
        "\n".join(f"- {name}: {plain(value, 500)}" for name, value in summary.setting(report)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _result(report: Report) -> str:
    best = report.best
    if best is None:
        return ""
    lines = [f"{plain(summary.figure(report, best))}."]
    lines += [plain(words, 500) for words in summary.advantages(report)]
    lines += [plain(summary.no_winner(report), 1000)] if report.equals else []
    words = command_words(best.setup)
    return "\n".join([*lines, "", f"`{words}`" if "`" not in words and words.isprintable() else plain(words, 2000)])


def _configurations(report: Report) -> str:
    columns = columns_of(report, [column for column in COLUMNS if column.name in _COLUMNS])
    rows = []
    for m in report.ranked[:_MOST]:
        why = "" if m.outcome is Outcome.MEASURED else f"{m.outcome}: {m.reason}" if m.reason else str(m.outcome)
        rows.append([plain(m.name), *(plain(column.cell(report, m)) for column in columns), plain(why)])
    if not rows:
        return ""
    remarks = any(row[-1] for row in rows)
    headers = ["Configuration", *(column.name for column in columns), "Remark"]
    table = _table(headers, rows) if remarks else _table(headers[:-1], [row[:-1] for row in rows])
    total = len(report.measurements)
    more = f"\n\nAnd {total - len(rows)} more; {total} in all: {summary.counts(report)}."
    return table + more if total > len(rows) else table


def _gains(report: Report) -> str:
    found = summary.gains(report)[:3]
    return "\n".join(["With a looser limit:", "", *(f"- {plain(str(gain), 500)}" for gain in found)]) if found else ""


def _comparison(comparison: Comparison) -> str:
    rows = [
        [plain(line.name), f"**{line.verdict}**" if line.worse else line.verdict, *map(plain, line[3:])]
        for line in table_of(comparison)
    ]
    parts = [f"### {plain(comparison_headline(comparison), 500)}"]
    parts += ["\n".join(f"- {plain(what)}: {plain(old)} → {plain(new)}" for what, old, new in comparison.changes)]
    parts += [_table(HEADERS, rows)] if rows else []
    return "\n\n".join(part for part in parts if part)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    texts = ("Configuration", "Verdict", "Remark")
    align = ["left" if header in texts else "right" for header in headers]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=align)
