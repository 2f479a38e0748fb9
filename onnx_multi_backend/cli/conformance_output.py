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
    coverage_text,
    describe_changes,
    summarize,
    tallies,
)


def show_report(report: Report, left_out: Sequence[Choice] = ()) -> None:
    """Print a section a backend, with its operator coverage, and the summary of all."""
    figures = tallies(report)
    for tally in figures:
        _show_backend(report, tally)
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
    better = len(changes.labels) - len(changes.regressions)
    console.heading(f"Against {source}: {len(changes.regressions)} worse, {better} other changes")
    for text in describe_changes(changes):
        console.line(text, indent=2)


def _show_backend(report: Report, tally: Tally) -> None:
    run = tally.run
    options = ", ".join(f"{key}={value}" for key, value in run.options.items())
    console.heading(f"{run.name} on {', '.join(run.devices)}, {run.engine or run.path}")
    cases = f"{tally.total} case{'' if tally.total == 1 else 's'}, {tally.passed} passed: {counts(tally.counts)}"
    rows = [("result", cases), ("expectations", run.expectations or "none")]
    console.facts([*rows, ("options", options)] if options else rows)
    problems = [f"{r.name}: {r.unexpected}" for r in tally.unexpected] + list(run.problems)
    if problems:
        console.line(f"not as expected: {len(problems)}", indent=2)
        for text in problems:
            console.line(console.one_line(text), indent=4)
    sys.stdout.write(console.harmless(coverage_text(report, run.name)))
    console.line()


def _show_summary(report: Report, figures: Sequence[Tally]) -> None:
    shown = list(summarize(report.cases))
    rows = []
    for t in figures:
        labels = (t.counts.get(label, 0) for label in shown)
        numbers = (t.total, t.passed, *labels, len(t.unexpected) + len(t.run.problems))
        rows.append([t.run.name, ", ".join(t.run.devices), *map(str, numbers)])
    console.heading("Summary" + (", interrupted: cases are missing" if report.interrupted else ""))
    console.table(["Backend", "Device", "Cases", "Passed", *shown, "Not as expected"], rows)
