# SPDX-License-Identifier: Apache-2.0
"""What changed between two reports, by backend, case and label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.processor_facts import difference
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.page_style.markdown_text import code, plain, table


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A case whose label changed.

    Parameters
    ----------
    backend, name : str
    old, new : Label
    headline : str
        What the new result says, in one line.
    """

    backend: str
    name: str
    old: Label
    new: Label
    headline: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether something was lost."""
        return self.new.is_worse_than(self.old)

    @property
    def newly_failing(self) -> bool:
        """Whether it passed, and does not any more."""
        return self.old.is_pass and not self.new.is_pass

    @property
    def kind(self) -> str:
        """``newly failing``, ``worse``, ``better`` (it passes, and did not) or ``changed``."""
        if self.newly_failing:
            return "newly failing"
        if self.is_regression:
            return "worse"
        return "better" if self.new.is_pass and not self.old.is_pass else "changed"


@dataclass(frozen=True)
class Changes:
    """The differences of two reports.

    Parameters
    ----------
    labels : tuple of LabelChange
        Newly failing ones first, then other losses, then the rest.
    only_old, only_new : tuple of (str, int)
        How many cases of a backend are in one of the reports alone.
    common : int
        How many cases are in both.
    moved : tuple of (str, str)
        The backends that ran on another processor, and how it differs.
    """

    labels: tuple[LabelChange, ...]
    only_old: tuple[tuple[str, int], ...]
    only_new: tuple[tuple[str, int], ...]
    common: int
    moved: tuple[tuple[str, str], ...] = ()

    @property
    def regressions(self) -> list[LabelChange]:
        """What was lost."""
        return [change for change in self.labels if change.is_regression]

    @property
    def counts(self) -> str:
        """How many changes there are: ``3 worse, 1 better, 5 other changes of label``."""
        better = sum(change.kind == "better" for change in self.labels)
        worse = len(self.regressions)
        return f"{worse} worse, {better} better, {len(self.labels) - worse - better} other changes of label"

    @property
    def remarks(self) -> list[str]:
        """What is to be said beside the labels, one line each."""
        lines = [f"{name} ran on {how}" for name, how in self.moved]
        lines += [f"{_cases(count)} of {name} in the old report alone" for name, count in self.only_old]
        lines += [f"{_cases(count)} of {name} in the new report alone" for name, count in self.only_new]
        return lines


def compare_reports(old: Report, new: Report) -> Changes:
    """Compare two reports, case by case; backends are matched by their name in the reports."""
    before, after = _by_case(old), _by_case(new)
    labels = [
        LabelChange(*key, before[key].label, result.label, result.headline)
        for key, result in after.items()
        if key in before and before[key].label != result.label
    ]
    labels.sort(key=lambda c: (not c.newly_failing, not c.is_regression))
    moved = [(name, _moved(old.backends[name], run)) for name, run in new.backends.items() if name in old.backends]
    return Changes(
        tuple(labels),
        _left(before, after),
        _left(after, before),
        len(before.keys() & after.keys()),
        tuple((name, how) for name, how in moved if how),
    )


def render_changes(changes: Changes, source: str, limit: int = 100) -> str:
    """Write the differences as Markdown.

    Parameters
    ----------
    changes : Changes
    source : str
        What the old report is called.
    limit : int
        How many changes are listed.
    """
    lines = [f"### Against {code(source)}", f"{changes.counts}."]
    lines += [f"{code(name)} ran on {plain(how)}." for name, how in changes.moved]
    if changes.labels:
        rows = [
            [c.kind, code(c.backend), code(c.name), c.old.value, c.new.value, plain(c.headline)]
            for c in changes.labels[:limit]
        ]
        lines.append(table(["", "backend", "case", "was", "is", ""], rows))
        if len(changes.labels) > limit:
            lines.append(f"and {len(changes.labels) - limit} more.")
    lines += [f"{_cases(count)} of {code(name)} in the old report alone." for name, count in changes.only_old]
    lines += [f"{_cases(count)} of {code(name)} in the new report alone." for name, count in changes.only_new]
    return "\n\n".join(lines) + "\n"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def describe_changes(changes: Changes) -> list[str]:
    """Return one line a change, for a terminal."""
    lines = []
    for c in changes.labels:
        because = f": {c.headline}" if c.headline else ""
        lines.append(f"{c.kind}: {c.backend} {c.name}: {c.old} -> {c.new}{because}")
    return [*lines, *changes.remarks]


def _moved(old: BackendRun, new: BackendRun) -> str:
    return difference(old.environment.processor, new.environment.processor)


def _by_case(report: Report) -> dict[tuple[str, str], CaseResult]:
    return {(case.backend, case.name): case for case in report.cases}


def _left(
    some: dict[tuple[str, str], CaseResult], others: dict[tuple[str, str], CaseResult]
) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(backend for backend, _ in some.keys() - others.keys()).items()))
