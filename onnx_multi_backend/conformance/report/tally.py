# SPDX-License-Identifier: Apache-2.0
"""The figures of one backend that every form of a report begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.results import CaseResult, summarize


@dataclass(frozen=True)
class Tally:
    """How one backend did.

    Parameters
    ----------
    run : BackendRun
    results : list of CaseResult
    counts : mapping of Label to int
        Of the labels that occur, in the order of `Label`.
    """

    run: BackendRun
    results: list[CaseResult]
    counts: Mapping[Label, int]

    @property
    def total(self) -> int:
        """How many cases there are."""
        return len(self.results)

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return sum(count for label, count in self.counts.items() if label.is_pass)

    @property
    def percent(self) -> str:
        """The share that passed, rounded down: only all of them are 100 %. Empty where there is no case."""
        return f"{1000 * self.passed // self.total / 10:.1f} %" if self.total else ""

    @property
    def unexpected(self) -> list[CaseResult]:
        """Those that are not as expected."""
        return [result for result in self.results if result.unexpected]


def tallies(report: Report) -> list[Tally]:
    """Return the figures of every backend of a report, in its order."""
    results: dict[str, list[CaseResult]] = {name: [] for name in report.backends}
    for case in report.cases:
        results[case.backend].append(case)
    return [Tally(run, results[name], summarize(results[name])) for name, run in report.backends.items()]
