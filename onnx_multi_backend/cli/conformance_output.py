# SPDX-License-Identifier: Apache-2.0
"""What ``conformance`` prints of a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from onnx_multi_backend.cli import console
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.cli.progress import counts
from onnx_multi_backend.conformance import Changes, Label, Report, coverage_text, describe_changes, summarize


def show_report(report: Report, left_out: Sequence[Choice] = ()) -> None:
    """Print a section a backend, with its operator coverage, and the summary of all."""
    for name in report.backends:
        _show_backend(report, name)
    _show_summary(report)
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


def _show_backend(report: Report, name: str) -> None:
    run, results = report.backends[name], report.of(name)
    options = ", ".join(f"{key}={value}" for key, value in run.options.items())
    console.heading(f"{name} on {', '.join(run.devices)}, {run.engine or run.path}")
    passed = sum(r.label.is_pass for r in results)
    cases = f"{len(results)} case{'' if len(results) == 1 else 's'}, {passed} passed: {counts(summarize(results))}"
    rows = [("result", cases), ("expectations", run.expectations or "none")]
    console.facts([*rows, ("options", options)] if options else rows)
    problems = [f"{r.name}: {r.unexpected}" for r in results if r.unexpected] + list(run.problems)
    if problems:
        console.line(f"not as expected: {len(problems)}", indent=2)
        for text in problems:
            console.line(console.one_line(text), indent=4)
    sys.stdout.write(coverage_text(report, name))
    console.line()


def _show_summary(report: Report) -> None:
    shown = [label for label in Label if any(case.label == label for case in report.cases)]
    rows = []
    for name, run in report.backends.items():
        results = report.of(name)
        labels = summarize(results)
        odd = sum(bool(r.unexpected) for r in results) + len(run.problems)
        passed = sum(r.label.is_pass for r in results)
        figures = [len(results), passed, *(labels[label] for label in shown), odd]
        rows.append([name, ", ".join(run.devices), *map(str, figures)])
    console.heading("Summary" + (", interrupted: cases are missing" if report.interrupted else ""))
    console.table(["Backend", "Device", "Cases", "Passed", *shown, "Not as expected"], rows)
