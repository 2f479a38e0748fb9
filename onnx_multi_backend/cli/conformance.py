# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend conformance``: ONNX's official suite on presets, and on any other backend."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from onnx_multi_backend.cli import arguments, console
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.cli.conformance_files import Targets
from onnx_multi_backend.cli.conformance_output import show_changes, show_report
from onnx_multi_backend.cli.conformance_plan import make_plans
from onnx_multi_backend.cli.messages import INTERRUPTED
from onnx_multi_backend.cli.progress import RunProgress
from onnx_multi_backend.conformance import (
    KINDS,
    TIMEOUT,
    Changes,
    Report,
    Selection,
    compare_reports,
    merge,
    run_conformance,
)
from onnx_multi_backend.conformance.interrupts import one_interrupt, uninterrupted
from onnx_multi_backend.conformance.workers.memory import parse_memory
from onnx_multi_backend.errors import OptionError

Kind = enum.StrEnum("Kind", {kind.replace("-", "_"): kind for kind in KINDS})  # type: ignore[misc]


class FailOn(enum.StrEnum):
    """What makes the exit code 1."""

    UNEXPECTED = "unexpected"
    REGRESSIONS = "regressions"


EXAMPLES = """\b
Examples:
  onnx-multi-backend conformance
  onnx-multi-backend conformance --preset OrtCpu --backend onnxruntime.backend --out report
  onnx-multi-backend conformance --preset OrtOpenvino --fallback full -k "conv and not transpose"
  onnx-multi-backend conformance --backend my.backend --write-expectations my_backend.toml
  onnx-multi-backend conformance --merge cpu/report.json ep/report.json --out all
"""

_WITH_MERGE = ("reports", "merge_reports", "out", "scoreboard_dir", "compare_with", "fail_on", "coverage")


def _option(*names: str, help: str, metavar: str | None = None, panel: str | None = None) -> object:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False)


def conformance(
    context: typer.Context,
    *,
    reports: Annotated[
        list[Path] | None, typer.Argument(metavar="REPORT.json", help="With --merge: the reports to join.")
    ] = None,
    preset: arguments.PresetNames = None,
    backend: Annotated[
        list[str] | None,
        _option("--backend", metavar="PATH", help="A module or class that follows onnx.backend.base; repeatable."),
    ] = None,
    device: arguments.DeviceName = None,
    fallback: arguments.FallbackPolicy = None,
    option: arguments.Options = None,
    expression: Annotated[
        str, _option("-k", metavar="EXPRESSION", help="Only cases by name, as in pytest: 'conv and not transpose'.")
    ] = "",
    domain: Annotated[
        list[str] | None, _option("--domain", metavar="DOMAIN", help="Only cases with an operator of it; repeatable.")
    ] = None,
    operator: Annotated[
        list[str] | None, _option("--operator", metavar="NAME", help="Only cases with this operator; repeatable.")
    ] = None,
    kind: Annotated[
        list[Kind] | None,
        _option("--kind", metavar="KIND", help=f"Only cases of this kind: {', '.join(KINDS)}; repeatable."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes at once; by default the cores.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Time limit of a case.")
    ] = TIMEOUT,
    memory: Annotated[
        str | None, _option("--memory", metavar="SIZE", help="Memory limit of a process, such as 2GiB (Linux only).")
    ] = None,
    out: Annotated[
        Path | None, _option("--out", metavar="DIR", help="Write the reports here: report.json, index.html, and more.")
    ] = None,
    scoreboard_dir: Annotated[
        Path | None,
        _option("--scoreboard-dir", metavar="DIR", help="Write the files of onnx/backend-scoreboard here."),
    ] = None,
    expectations: Annotated[
        str | None,
        _option("--expectations", metavar="[NAME=]FILE", help="Known failures of the backend of that name."),
    ] = None,
    expectations_dir: Annotated[
        Path | None,
        _option(
            "--expectations-dir",
            metavar="DIR",
            help="A folder of files of known failures, one for each preset. By default those that come with the package.",
        ),
    ] = None,
    write_expectations: Annotated[
        Path | None,
        _option("--write-expectations", metavar="FILE", help="Draft a file of known failures, grouped by cause."),
    ] = None,
    compare_with: Annotated[
        Path | None, _option("--compare", metavar="OLD.json", help="Tell what changed since an earlier report.")
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="What makes the exit code 1; 'regressions' goes with --compare.")
    ] = FailOn.UNEXPECTED,
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage", help="Print the table of operators of each backend, and all that is not as expected."
        ),
    ] = False,
    merge_reports: Annotated[
        bool, typer.Option("--merge", help="Run nothing, and join the given reports into one.")
    ] = False,
) -> None:
    """Run ONNX's official suite on presets and other backends.

    Without --preset or --backend it runs every preset usable here except Ort, which with the CPU provider repeats OrtCpu.

    Each case runs in a worker process, so a crash costs only that case. It gets a label that tells how it passed (native, adapted, fallback, pass) or
    why it did not; --coverage prints the operators covered by each backend. A known failure is an xfail; one that passes, and any other failure,
    makes the exit code 1. With --fallback or --option a known failure may pass.
    """
    if fail_on == FailOn.REGRESSIONS and compare_with is None:
        raise OptionError("--fail-on regressions goes with --compare OLD.json.")
    targets = Targets(out, scoreboard_dir, write_expectations)
    targets.check()
    limit = parse_memory(memory) if memory is not None else None
    old = Report.read(compare_with) if compare_with else None
    left_out: list[Choice] = []
    with one_interrupt():
        if merge_reports:
            _refuse_what_runs(context)
            report = _merged(reports)
        else:
            if reports:
                raise OptionError(f"{reports[0]}: reports are given with --merge.")
            plans, left_out = make_plans(
                preset,
                backend,
                device,
                arguments.parse_options(option, fallback),
                own_options=bool(option),
                folder=expectations_dir,
                file=expectations,
            )
            if write_expectations and len(plans) != 1:
                raise OptionError(f"--write-expectations drafts for one backend; {len(plans)} are run. Name one.")
            selection = Selection(expression, tuple(domain or ()), tuple(operator or ()), tuple(map(str, kind or ())))
            progress = RunProgress()
            try:
                report = run_conformance(plans, selection, jobs=jobs, timeout=timeout, memory=limit, observer=progress)
            finally:
                progress.collected()
        changes = compare_reports(old, report) if old else None
        try:
            with uninterrupted():
                chosen = bool(expression or domain or operator or kind)
                targets.write(report, changes, str(compare_with), selected=chosen)
        finally:  # what cannot be written is at least shown
            show_report(report, left_out, coverage=coverage)
            if changes:
                show_changes(changes, str(compare_with))
        for path in targets.written():
            console.line(f"written: {path}")
    if code := _exit_code(report, changes, fail_on):
        raise typer.Exit(code)


def _merged(paths: Sequence[Path] | None) -> Report:
    if not paths:
        raise OptionError("--merge needs the report.json of two runs or more.")
    return merge([Report.read(path) for path in paths], sources=[str(path) for path in paths])


def _refuse_what_runs(context: typer.Context) -> None:
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name not in _WITH_MERGE and source is not None and source.name == "COMMANDLINE":
            raise OptionError(f"{parameter.opts[0]} is for a run, and --merge runs nothing.")


def _exit_code(report: Report, changes: Changes | None, fail_on: FailOn) -> int:
    if report.interrupted:
        return INTERRUPTED
    if fail_on == FailOn.REGRESSIONS and changes is not None:
        if not changes.common:
            raise OptionError("--fail-on regressions: no case of a backend of the same name is in both reports.")
        return int(bool(changes.regressions))
    return int(not report.as_expected)
