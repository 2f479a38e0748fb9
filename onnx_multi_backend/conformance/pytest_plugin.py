# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: the backend to test, and reports on each backend apart.

It is there wherever the package is installed; from a checkout, register it in the root ``conftest.py``::

    pytest_plugins = ["onnx_multi_backend.conformance.pytest_plugin"]

What is known of a case travels on the report of its setup, and its result on that of its call, so that pytest-xdist
carries them to the process that reports: of a case whose process died, only the first has come.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from onnx_multi_backend.conformance.backend_ref import BackendRef
from onnx_multi_backend.conformance.baseline import Baseline, worse
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import find_case
from onnx_multi_backend.conformance.foreign import sound
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.processor_facts import difference
from onnx_multi_backend.conformance.pytest_suite import NO_BACKEND, Options, check_chosen
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.report.text import coverage_headline, coverage_text
from onnx_multi_backend.conformance.report.write import write_reports
from onnx_multi_backend.conformance.results import CaseResult, summarize
from onnx_multi_backend.host import processor


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all of which begin with ``--onnx-``."""
    group = parser.getgroup("onnx conformance", "ONNX conformance")
    add = group.addoption
    add("--onnx-backend", metavar="PATH", help="dotted path of the module or class to test")
    add("--onnx-device", action="append", metavar="DEVICE", help="run each case on it; repeatable, by default CPU")
    add("--onnx-expectations", type=Path, metavar="FILE", help="the backend's known failures, as TOML")
    add("--onnx-baseline", type=Path, metavar="FILE", help="labels that must not get worse")
    add("--onnx-update-baselines", action="store_true", help="write the labels of this run to the baselines")
    add("--onnx-report", type=Path, metavar="DIR", help="write the reports of this run to DIR")


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options on, and report where reports are printed."""
    Options.compare_with_baseline = not config.getoption("--onnx-update-baselines")
    Options.backend = config.getoption("--onnx-backend")
    if Options.backend is not None and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as for python -m: a backend may lie in the working directory
    Options.devices = config.getoption("--onnx-device") or ("CPU",)
    Options.expectations = config.getoption("--onnx-expectations")
    Options.baseline = config.getoption("--onnx-baseline")
    if not hasattr(config, "workerinput"):
        if Options.backend is None and _runs_the_suite(config):
            raise pytest.UsageError(NO_BACKEND)
        check_chosen()
        config.pluginmanager.register(_Reporter(config), "onnx-conformance-reporter")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what is known of a case on the report of its setup, and its result on that of its call."""
    report = yield
    about = getattr(getattr(item, "obj", None), "onnx_about", None)
    if about:  # what a foreign backend logs and prints may be what pytest-xdist cannot carry
        report.sections = [(name, sound(text)) for name, text in report.sections]
    if call.when == "setup":
        vars(report)["onnx_about"] = about and about()
    elif call.when == "call":
        vars(report)["onnx_result"] = getattr(getattr(item, "instance", None), "onnx_result", None)
    return report


def _runs_the_suite(config: pytest.Config) -> bool:
    return bool(config.getoption("pyargs")) and any(arg.startswith(__package__) for arg in config.args)


class _Backend:
    """The results of one backend so far."""

    def __init__(self, baseline: str | None, run: dict[str, Any]) -> None:
        self.results: dict[str, CaseResult] = {}
        self.facts: dict[str, CaseFacts] = {}
        self.baseline = Path(baseline) if baseline else None
        self.run = run

    @property
    def labels(self) -> dict[str, Label]:
        return {r.name: r.label for r in self.results.values()}


class _Reporter:
    def __init__(self, config: pytest.Config) -> None:
        self._backends: dict[str, _Backend] = {}
        self._begun: dict[str, dict[str, Any]] = {}
        self._update: bool = config.getoption("--onnx-update-baselines")
        self._folder: Path | None = config.getoption("--onnx-report")
        self._command = ["pytest", *map(str, config.invocation_params.args)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        about: dict[str, Any] | None = getattr(report, "onnx_about", None)
        result: dict[str, Any] | None = getattr(report, "onnx_result", None)
        if about:
            self._begun[report.nodeid] = about
        elif result:
            self._note(self._begun.pop(report.nodeid), CaseResult.from_dict(result))
        elif report.when not in ("setup", "call", "teardown") and report.nodeid in self._begun:
            # xdist makes such a report in the place of a process that died.
            about = self._begun.pop(report.nodeid)
            reason = str(report.longrepr)
            unexpected = f"{Label.CRASH}: {reason}"
            case = CaseResult(
                about["backend"], about["name"], about["kind"], Label.CRASH, reason, unexpected=unexpected
            )
            self._note(about, case)

    def _note(self, about: dict[str, Any], result: CaseResult) -> None:
        backend = self._backends.setdefault(result.backend, _Backend(about["baseline"], about["run"]))
        backend.results[result.name] = result
        backend.facts[result.name] = CaseFacts.from_dict(about["facts"])

    def pytest_sessionfinish(self) -> None:
        if self._update:
            versions = {name: run.versions for name, run in self._report().backends.items()}
            for name, backend in self._backends.items():
                if backend.baseline:
                    _update(name, backend, versions[name], backend.baseline)
        if self._folder and self._backends:
            write_reports(self._report(), self._folder)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._backends:
            return
        report = self._report()
        for name, backend in sorted(self._backends.items()):
            results = backend.results.values()
            counts = ", ".join(f"{count} {label}" for label, count in summarize(results).items())
            terminalreporter.section(f"ONNX conformance: {name}")
            terminalreporter.write_line(f"{len(results)} case{'' if len(results) == 1 else 's'}: {counts}")
            if backend.baseline:
                terminalreporter.write_line(_compared(backend, backend.baseline, self._update))
            coverage = coverage_headline if terminalreporter.verbosity < 0 else coverage_text
            terminalreporter.write(coverage(report, name))
        if self._folder:
            terminalreporter.write_line(f"reports: {self._folder}")

    def _report(self) -> Report:
        environment = Environment.current(self._command)
        runs = {name: _described(name, b.run, environment) for name, b in self._backends.items()}
        cases = [result for backend in self._backends.values() for result in backend.results.values()]
        models = {name: facts for backend in self._backends.values() for name, facts in backend.facts.items()}
        return Report(environment, runs, tuple(cases), models)


def _described(name: str, run: dict[str, Any], environment: Environment) -> BackendRun:
    ref = BackendRef(run["path"], name, tuple(run["devices"]), run["options"])
    return BackendRun.of(
        ref, environment, versions=run["versions"], expectations=run["expectations"], problems=run["problems"]
    )


def _update(name: str, backend: _Backend, versions: Mapping[str, str], path: Path) -> None:
    """Write what this run knows; cases it did not run keep their label, cases ONNX no longer has go."""
    kept = Baseline.read(path).labels if path.exists() else {}
    labels = {n: label for n, label in {**kept, **backend.labels}.items() if find_case(n)}
    Baseline(name, versions, labels, processor.current()).write(path)


def _compared(backend: _Backend, path: Path, updated: bool) -> str:
    if updated:
        return f"baseline written: {path}"
    if not path.exists():
        return f"no baseline yet: write {path} with --onnx-update-baselines"
    before = Baseline.read(path)
    lost, gained = worse(before.labels, backend.labels), worse(backend.labels, before.labels)
    excused = sum(not backend.results[case.name].unexpected for case in lost)
    words = [f"{len(lost) - excused} worse, {len(gained)} better"]
    if excused:
        words.append(f"{excused} worse as the expectations for this processor say")
    if elsewhere := difference(before.processor, processor.current()):
        words.append(elsewhere)
    if gained:
        words.append("keep it with --onnx-update-baselines")
    return f"against the baseline: {'; '.join(words)}"
