# SPDX-License-Identifier: Apache-2.0
"""What ``conformance`` prints of a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from onnx_multi_backend.cli import console
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.cli.progress import counts
from onnx_multi_backend.conformance import (
    Changes,
    Report,
    Tally,
    coverage_headline,
    coverage_text,
    describe_changes,
    frequent_reasons,
    summarize,
    tallies,
)

#: Lines that reasons take, all backends together, and at the most of one backend.
_REASON_LINES = 40
_MOST_REASONS = 10


def show_report(report: Report, left_out: Sequence[Choice] = (), *, coverage: bool = False) -> None:
    """Print a section a backend, with the most frequent reasons and on demand its operator coverage, and the summary of all."""
    figures = tallies(report)
    most = max(2, min(_MOST_REASONS, _REASON_LINES // max(len(figures), 1) - 5))
    for tally in figures:
        _show_backend(report, tally, most, coverage=coverage)
    _show_summary(report, figures)
    if left_out:
        console.line()
        console.heading("Not run")
        by_reason: dict[str, list[str]] = {}
        for choice in left_out:
            by_reason.setdefault(choice.why_not.removeprefix(f"{choice.preset.name} "), []).append(choice.preset.name)
        for reason, names in by_reason.items():
            console.line(f"{', '.join(names)}: {reason}", indent=2)


def show_changes(changes: Changes, source: str) -> None:
    """Print what changed, what was lost first."""
    console.line()
    console.heading(f"Against {source}: {changes.counts}")
    for text in describe_changes(changes):
        console.line(text, indent=2)


def _show_backend(report: Report, tally: Tally, most: int, *, coverage: bool) -> None:
    run = tally.run
    options = ", ".join(f"{key}={value}" for key, value in run.options.items())
    console.heading(f"{run.name} on {', '.join(run.devices)}, {run.engine or run.path}")
    cases = f"{tally.total} case{'' if tally.total == 1 else 's'}, {tally.passed} passed: {counts(tally.counts)}"
    rows = [("result", cases), ("expectations", run.expectations or "none")]
    console.facts([*rows, ("options", options)] if options else rows)
    problems = [f"{r.name}: {r.unexpected}" for r in tally.unexpected] + list(run.problems)
    if problems:
        console.line(f"not as expected: {len(problems)}", indent=2)
        for text in problems[: None if coverage else most]:
            console.line(_short(text), indent=4)
        if len(problems) > most and not coverage:
            console.line(f"and {len(problems) - most} more, in the report that --out writes", indent=4)
    _show_reasons(tally, most)
    if coverage:
        sys.stdout.write(console.harmless(coverage_text(report, run.name)))
    else:
        console.line(coverage_headline(report, run.name).splitlines()[0], indent=2)
    console.line()


def _show_reasons(tally: Tally, most: int) -> None:
    """Why cases did not pass, the most frequent reasons first."""
    reasons = frequent_reasons(tally.results)
    for reason in reasons[:most]:
        console.line(_short(str(reason)), indent=2)
    if len(reasons) > most:
        rest = sum(reason.count for reason in reasons[most:])
        console.line(f"{rest} for {len(reasons) - most} other reasons", indent=2)


def _short(text: str) -> str:
    """A text on one line of the terminal; all of it in a pipe."""
    text = console.one_line(text)
    width = console.width() - 5
    return text if width <= 0 or len(text) <= width else text[: width - 1] + "…"


def _show_summary(report: Report, figures: Sequence[Tally]) -> None:
    shown = list(summarize(report.cases))
    rows = []
    for t in figures:
        labels = (t.counts.get(label, 0) for label in shown)
        numbers = (t.total, t.passed, *labels, len(t.unexpected) + len(t.run.problems))
        rows.append([t.run.name, ", ".join(t.run.devices), *map(str, numbers)])
    console.heading("Summary" + (", interrupted: cases are missing" if report.interrupted else ""))
    console.table(["Backend", "Device", "Cases", "Passed", *shown, "Not as expected"], rows)
