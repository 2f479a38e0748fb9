# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown: the summary of a CI job, and the table for a README."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from onnx_multi_backend.conformance.report.coverage import (
    OperatorCoverage,
    default_first,
    known_operators,
    operator_coverage,
)
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.tally import tallies
from onnx_multi_backend.conformance.results import CaseResult, summarize
from onnx_multi_backend.page_style.markdown_text import block, code, details, plain, table

#: How many results of one backend, and how many problems, are listed.
ROWS = 50

#: More results than these are folded away.
OPEN_ROWS = 20

#: In bytes. GitHub drops a job summary of more than 1 MiB; what else the step writes needs some room too.
LIMIT = 1_000_000


def render_markdown(report: Report, changes: str = "") -> str:
    """Return the report as Markdown for the summary of a CI job, below the size that GitHub takes.

    Parameters
    ----------
    report : Report
    changes : str
        A section of Markdown to put after the table of backends: what changed since another report, for instance.
    """
    sections = [
        _heading(report),
        scoreboard_table(report),
        changes.strip(),
        _unexpected(report),
        _problems(report),
        *_coverage(report),
        _environments(report),
        _commands(report),
    ]
    return "\n\n".join(_fitting(section for section in sections if section)) + "\n"


def scoreboard_table(report: Report) -> str:
    """Return one table as Markdown: a row for each backend, how many of its cases passed, and how they were labelled.

    Only labels that occur have a column. The share of passes is rounded down: 100 % is all of them.
    """
    occurring = summarize(report.cases)
    columns = ["cases", "passed", *(label.value for label in occurring), "not as expected"]
    rows = []
    for tally in tallies(report):
        run, share = tally.run, f" ({tally.percent})" if tally.total else ""
        numbers = [tally.total, f"{tally.passed}{share}", *(tally.counts.get(label, 0) for label in occurring)]
        described = [code(run.name), plain(run.engine), plain(", ".join(run.devices))]
        rows.append([*described, *map(str, numbers), str(len(tally.unexpected))])
    return table(["backend", "engine", "devices", *columns], rows, numbers=columns)


def _heading(report: Report) -> str:
    problems = sum(len(run.problems) for run in report.backends.values())
    verdict = f"{len(report.unexpected) or 'none'} not as expected"
    if problems:
        verdict += f", and {_count(problems, 'problem')} of expectations"
    interrupted = "> **The run was interrupted: cases are missing.**\n\n" if report.interrupted else ""
    counted = f"{_count(len(report.cases), 'result')} of {_count(len(report.backends), 'backend')}"
    return f"{interrupted}## ONNX conformance\n\n{counted}: {verdict}."


def _unexpected(report: Report) -> str:
    rows: list[list[str]] = []
    for tally in tallies(report):
        name, cases = tally.run.name, tally.unexpected
        rows += [[code(name), code(c.name), c.label.value, plain(_why(c))] for c in cases[:ROWS]]
        if len(cases) > ROWS:
            rows.append([code(name), f"and {len(cases) - ROWS} more", "", ""])
    if not rows:
        return ""
    found = report.unexpected
    listed = table(["backend", "case", "label", "why"], rows)
    if len(found) > OPEN_ROWS:
        listed = details(_count(len(found), "result"), listed)
    return f"### Not as expected\n\n{listed}"


def _why(case: CaseResult) -> str:
    return case.headline if case.label.is_failure and case.headline else case.unexpected


def _problems(report: Report) -> str:
    found = [f"- {code(run.name)}: {plain(p, 500)}" for run in report.backends.values() for p in run.problems]
    if not found:
        return ""
    more = [f"- and {len(found) - ROWS} more"] if len(found) > ROWS else []
    return "\n".join(["### Problems of expectations", "", *found[:ROWS], *more])


def _coverage(report: Report) -> Iterable[str]:
    if not report.models:
        return
    found = {name: operator_coverage(report, name) for name in report.backends}
    total = str(len(known_operators()))
    columns = ["passed", "passed as ONNX counts", "loaded", "total"]
    rows = [
        [
            code(name),
            str(sum(c.passed for c in operators.values())),
            str(sum(c.passed_as_onnx_counts for c in operators.values())),
            str(len(operators)),
            total,
        ]
        for name, operators in found.items()
    ]
    yield (
        "### Operators\n\nAn operator is passed when every case that has it passes, and loaded when a case that was tried has it; total counts "
        "ONNX's operators. ONNX's own report counts one as passed when a case that has it in its main graph passes.\n\n"
        + table(["backend", *columns], rows, numbers=columns)
    )
    incomplete = {o for operators in found.values() for o, c in operators.items() if not c.passed}
    if incomplete:
        names = [code(name) for name in found]
        cells = [
            [plain(str(o)), *(_passes(operators.get(o)) for operators in found.values())]
            for o in sorted(incomplete, key=default_first)
        ]
        listed = table(["operator", *names], cells, numbers=names)
        yield details(f"{_count(len(incomplete), 'operator')} not fully passed: cases passed / cases", listed)


def _passes(coverage: OperatorCoverage | None) -> str:
    return f"{coverage.passes}/{coverage.tried.cases}" if coverage else ""


def _environments(report: Report) -> str:
    header = ["backend", "started", "onnx", "engine", "python", "platform", "cpu", "cores"]
    rows = []
    for run in report.backends.values():
        e = run.environment
        cells = (e.started, run.versions.get("onnx", ""), run.engine, e.python, e.platform, e.hardware, str(e.cores))
        rows.append([code(run.name), *map(plain, cells)])
    return f"### Environment\n\n{table(header, rows, numbers=['cores'])}"


def _commands(report: Report) -> str:
    """Show the command that made the report and, of a merged one, those that ran the backends."""
    environments = [report.environment, *(run.environment for run in report.backends.values())]
    return block(dict.fromkeys(shlex.join(e.command) for e in environments))


def _fitting(sections: Iterable[str]) -> Iterable[str]:
    """Leave out what would make the whole too long; sections that come first matter more."""
    left = LIMIT
    for section in sections:
        size = len(section.encode(errors="replace")) + 2
        if size <= left:
            left -= size
            yield section
        else:
            heading = section.partition("\n")[0]
            yield (f"{plain(heading)}\n\n" if heading.startswith("#") else "") + "Left out here, for it is too long."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
