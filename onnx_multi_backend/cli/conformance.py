# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend conformance``: ONNX's official suite on the presets that are usable here."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from onnx_multi_backend.cli import arguments, console
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.cli.progress import SuiteProgress, counts, waiting
from onnx_multi_backend.conformance import (
    Case,
    CaseResult,
    Expectations,
    Label,
    Suite,
    run_suite,
    summarize,
    write_coverage,
)
from onnx_multi_backend.conformance.cases import official_cases
from onnx_multi_backend.devices import DeviceFamily
from onnx_multi_backend.errors import OptionError

_FOLDER = Path("backend_test/expectations")
_DEVICES = ("CPU", "CUDA")  # as ONNX's own suite calls them

EXAMPLES = """\b
Examples:
  onnx-multi-backend conformance
  onnx-multi-backend conformance --preset OrtCpu -k conv
  onnx-multi-backend conformance --preset OrtOpenvino --fallback full
"""


def conformance(
    *,
    preset: arguments.PresetNames = None,
    device: arguments.DeviceName = None,
    fallback: arguments.FallbackPolicy = None,
    option: arguments.Options = None,
    substring: Annotated[
        str, typer.Option("-k", metavar="TEXT", help="Only the cases with this in their name.", show_default=False)
    ] = "",
    expectations_dir: Annotated[
        Path | None,
        typer.Option(
            "--expectations-dir",
            metavar="DIR",
            help=f"Files of known failures, one a preset. By default ./{_FOLDER}, where that exists.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run ONNX's official suite on the presets.

    Each case gets a label that tells how it passed (native, adapted, fallback) or why it did not; ONNX's own report of
    the operators covered follows for each preset. A known failure is an xfail; one that passes, and any other failure,
    makes the exit code 1. With --fallback or --option a known failure may pass.
    """
    if expectations_dir is not None and not expectations_dir.is_dir():
        raise OptionError(f"--expectations-dir {expectations_dir}: there is no such folder.")
    folder = expectations_dir or (_FOLDER if _FOLDER.is_dir() else None)
    choices = arguments.choose(preset, device, arguments.parse_options(option, fallback))
    plans = [_plan(c, folder, strict=not option) for c in choices if not c.why_not]
    with waiting("collecting ONNX's cases, which takes some seconds"):
        official_cases()
    reports = [_run(plan, substring) for plan in plans]
    _summary(reports, [c for c in choices if c.why_not])
    if any(r.problems for r in reports):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Plan:
    """One preset to run, and what is expected of it."""

    choice: Choice
    device: str
    expectations: Expectations
    source: str
    strict: bool


@dataclass(frozen=True)
class _Report:
    """What came of one preset."""

    plan: _Plan
    results: Sequence[CaseResult]
    problems: Sequence[str]

    @property
    def labels(self) -> Counter[Label]:
        return summarize(self.results)

    @property
    def passed(self) -> int:
        return sum(n for label, n in self.labels.items() if label.is_pass)


def _plan(choice: Choice, folder: Path | None, *, strict: bool) -> _Plan:
    """Find the preset's file: ``ort_openvino.toml``, or for ``--fallback full`` ``ort_openvino_full.toml``."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", choice.preset.name).lower()
    fallback = choice.options.get("fallback", "partial")
    names = [stem] if fallback == "partial" else [f"{stem}_{fallback}", stem]
    file = next((f for n in names if folder and (f := folder / f"{n}.toml").is_file()), None)
    device = choice.device or _default_device(choice.preset.family)
    known = Expectations.load(file) if file else Expectations()
    strict = strict and (file is None or file.stem == names[0])
    return _Plan(choice, device, known, str(file) if file else "none", strict)


def _default_device(family: DeviceFamily) -> str:
    return next((d for d in _DEVICES if family.knows(d)), family.default)


def _run(plan: _Plan, substring: str) -> _Report:
    choice, label = plan.choice, plan.choice.label
    suite = Suite(choice.preset, (plan.device,), label)

    def select(case: Case) -> bool:
        return substring in case.name

    total = sum(map(select, suite.cases))
    if not total:
        raise OptionError(f"-k {substring}: no case has this in its name.")
    with SuiteProgress(label, total) as progress:
        results = run_suite(
            choice.preset,
            label,
            devices=(plan.device,),
            options=choice.options,
            select=select,
            on_result=progress.advance,
            expectations=plan.expectations,
        )
    report = _Report(plan, results, _problems(plan, results))
    _show(report)
    return report


def _problems(plan: _Plan, results: Sequence[CaseResult]) -> list[str]:
    """What was not expected, one line each."""
    lines = []
    for result in results:
        if result.label in (Label.FAIL, Label.CRASH, Label.TIMEOUT):
            lines.append(f"{result.name}: {result.label}: {_first_line(result.error or result.reason)}")
        elif plan.strict and (failure := plan.expectations.judge(result).failure):
            lines.append(f"{result.name}: {failure}")
    if plan.strict:
        devices = {*_DEVICES, plan.device}
        lines += plan.expectations.stale([f"{name}_{d.lower()}" for name in official_cases() for d in devices])
    return lines


def _first_line(error: str) -> str:
    """The first line that says something: numpy's AssertionErrors begin with an empty one."""
    lines = [line for line in error.splitlines() if line.strip()]
    return console.one_line(" ".join(lines[: 2 if lines and lines[0].strip().endswith("Error:") else 1]))


def _show(report: _Report) -> None:
    plan = report.plan
    console.heading(f"{plan.choice.label} on {plan.device}, {plan.choice.preset.availability().engine}")
    total = len(report.results)
    cases = f"{total} case{'' if total == 1 else 's'}, {report.passed} passed: {counts(report.labels)}"
    console.facts([("result", cases), ("expectations", plan.source)])
    if report.problems:
        console.line(f"not as expected: {len(report.problems)}", indent=2)
        for text in report.problems:
            console.line(console.one_line(text), indent=4)
    sys.stdout.write(_coverage(report.results))
    console.line()


def _coverage(results: Sequence[CaseResult]) -> str:
    text = io.StringIO()
    try:
        write_coverage(results, text)
    except ImportError as error:
        return f"  no operator coverage ({error}): pip install 'onnx-multi-backend[test]'\n"
    return text.getvalue()


def _summary(reports: Sequence[_Report], left_out: Sequence[Choice]) -> None:
    shown = [label for label in Label if any(r.labels[label] for r in reports)]
    rows = [
        [r.plan.choice.label, r.plan.device, str(len(r.results)), str(r.passed)]
        + [str(r.labels[label]) for label in shown]
        + [str(len(r.problems))]
        for r in reports
    ]
    console.heading("Summary")
    console.table(["Preset", "Device", "Cases", "Passed", *shown, "Not as expected"], rows)
    if left_out:
        console.line()
        console.heading("Not run")
        by_reason: dict[str, list[str]] = {}
        for choice in left_out:
            by_reason.setdefault(choice.why_not.removeprefix(f"{choice.preset.name} "), []).append(choice.preset.name)
        for reason, names in by_reason.items():
            console.line(f"{', '.join(names)}: {reason}", indent=2)
