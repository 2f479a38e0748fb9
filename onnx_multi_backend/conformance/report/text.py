# SPDX-License-Identifier: Apache-2.0
"""The operator coverage as plain text, laid out as ONNX's own report is, keyed by domain and operator."""

from __future__ import annotations

from tabulate import tabulate

from onnx_multi_backend.conformance.report.coverage import OperatorCoverage, known_operators, operator_coverage
from onnx_multi_backend.conformance.report.document import Report

_HEADERS = ("Domain", "Operator", "Passed", "Versions", "Attributes (name: #values)", "Input types")


def coverage_headline(report: Report, backend: str) -> str:
    """Return the counts of operators, ours and below them those that ONNX's own report would give."""
    found = operator_coverage(report, backend).values()
    rest = f"{len(found)}/{len(known_operators())}"
    strict, loose = sum(c.passed for c in found), sum(c.passed_as_onnx_counts for c in found)
    return (
        f"Operators (passed/loaded/total): {strict}/{rest} (passed: all its cases passed; loaded: it has cases here; total: all in ONNX)\n"
        f"As ONNX counts (one case is enough): {loose}/{rest}\n"
    )


def coverage_text(report: Report, backend: str) -> str:
    """Return ONNX's text report of one backend: the counts, then a line for each operator that was tried."""
    rows = [_row(c) for c in operator_coverage(report, backend).values()]
    table = tabulate(rows, headers=_HEADERS, tablefmt="plain", disable_numparse=True)
    return f"---------- onnx coverage: {backend} ----------\n{coverage_headline(report, backend)}{table}\n"


def _row(coverage: OperatorCoverage) -> tuple[str, ...]:
    tried = coverage.tried
    return (
        coverage.operator.domain,
        coverage.operator.op_type,
        f"{coverage.passes}/{tried.cases}",
        ", ".join(map(str, sorted(tried.since_versions))),
        ", ".join(f"{name}: {len(values)}" for name, values in sorted(tried.attributes.items())) or "No attributes",
        ", ".join(
            sorted(t.removeprefix("tensor(").removesuffix(")") if t.startswith("tensor(") else t for t in tried.types)
        ),
    )
