# SPDX-License-Identifier: Apache-2.0
"""``nodes.csv`` and ``models.csv`` as ONNX's own coverage report writes them, with a column for each backend.

The figures are those of ``onnx.backend.test.report.coverage``: operators are told apart by their type without the
domain, an operator passes with the first case that passes, and operators of every domain count as passed while only
those of the default domain have rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx import defs

from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.files import write_text

PASSED, FAILED, SKIPPED = "Passed!", "Failed!", "Skipped!"


def write_tables(report: Report, folder: Path, backends: Mapping[str, str] | None = None) -> None:
    """Write ``nodes.csv`` and ``models.csv``.

    Parameters
    ----------
    report : Report
    folder : Path
        Made if it is missing; files of these names there are replaced.
    backends : mapping of str to str, optional
        The backends to write of the report's, each with the name of its column; by default all by their own.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    named = {name: name for name in report.backends} if backends is None else backends
    columns = {column: _Column(report, name) for name, column in named.items()}
    write_text(folder / "nodes.csv", _nodes(columns))
    write_text(folder / "models.csv", _models(columns))


class _Column:
    """What one backend has to show."""

    def __init__(self, report: Report, backend: str) -> None:
        self.passed: set[str] = set()
        loaded_models: dict[str, set[str]] = {}
        passed_models: dict[str, set[str]] = {}
        cases = report.of(backend)
        for case in cases:
            facts = report.models[case.name]
            operators = {use.op_type for use in facts.operators if use.top_level}
            if case.kind == "real":
                loaded_models.setdefault(facts.graph_name, set()).update(operators)
            if case.label.is_pass:
                self.passed |= operators
                if case.kind == "real":
                    passed_models.setdefault(facts.graph_name, set()).update(operators)
        self.without_pass = FAILED if cases else SKIPPED
        self.models_passed = len(passed_models)
        # ONNX has those that never passed first.
        failed = {name: operators for name, operators in loaded_models.items() if name not in passed_models}
        self.models = {name: self._covered(operators, FAILED) for name, operators in failed.items()}
        self.models.update((name, self._covered(operators, PASSED)) for name, operators in passed_models.items())

    def _covered(self, operators: set[str], outcome: str) -> str:
        return f"{len(operators & self.passed)}/{len(operators)} nodes covered: {outcome}"


def _nodes(columns: Mapping[str, _Column]) -> str:
    schemas = sorted((s for s in defs.get_all_schemas() if s.domain in ("", "ai.onnx")), key=lambda s: s.name)
    rows = [["Op", *columns]]
    for schema in schemas:
        experimental = schema.support_level == defs.OpSchema.SupportType.EXPERIMENTAL
        name = f"{schema.name} (Experimental)" if experimental else schema.name
        rows.append([name, *(PASSED if schema.name in c.passed else c.without_pass for c in columns.values())])
    rows.append(["Summary", *(f"{len(c.passed)}/{len(schemas)} node tests passed" for c in columns.values())])
    return as_csv(rows)


def _models(columns: Mapping[str, _Column]) -> str:
    names = dict.fromkeys(name for column in columns.values() for name in column.models)
    rows = [["Model", *columns]]
    rows += [[name, *(column.models.get(name, SKIPPED) for column in columns.values())] for name in names]
    summaries = (f"{column.models_passed}/{len(column.models)} model tests passed" for column in columns.values())
    return as_csv([*rows, ["Summary", *summaries]])


def as_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as CSV, with the line ends and quotes that Python's csv module has by default, as ONNX's have."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()
