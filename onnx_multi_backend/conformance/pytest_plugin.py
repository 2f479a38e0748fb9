# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: labels, baselines and ONNX's coverage report, for each backend apart.

Register it in the root ``conftest.py``::

    pytest_plugins = ["onnx_multi_backend.conformance.pytest_plugin"]

A case's result travels on its test report, so that pytest-xdist carries it to the process that reports.
"""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from onnx_multi_backend.conformance.baseline import Baseline, worse
from onnx_multi_backend.conformance.cases import find_case
from onnx_multi_backend.conformance.coverage import write_coverage
from onnx_multi_backend.conformance.expectations import installed_version
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.pytest_suite import Options
from onnx_multi_backend.conformance.results import CaseResult, summarize


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-baselines`` and ``--results``."""
    group = parser.getgroup("onnx conformance")
    group.addoption("--update-baselines", action="store_true", help="write the labels of this run to the baselines")
    group.addoption("--results", type=Path, metavar="FILE", help="write the result of every case to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options on, and report where reports are printed."""
    Options.compare_with_baseline = not config.getoption("--update-baselines")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Reporter(config), "onnx-conformance-reporter")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put a case's result on its report."""
    report = yield
    if call.when == "call":
        vars(report)["onnx_case"] = getattr(getattr(item, "instance", None), "onnx_case", None)
    return report


class _Backend:
    """The results of one backend so far."""

    def __init__(self, baseline: str | None, engines: list[str]) -> None:
        self.results: dict[str, CaseResult] = {}
        self.baseline = Path(baseline) if baseline else None
        self.engines = engines

    @property
    def labels(self) -> dict[str, Label]:
        return {r.name: r.label for r in self.results.values()}


class _Reporter:
    def __init__(self, config: pytest.Config) -> None:
        self._backends: dict[str, _Backend] = {}
        self._update: bool = config.getoption("--update-baselines")
        self._results: Path | None = config.getoption("--results")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case: dict[str, Any] | None = getattr(report, "onnx_case", None)
        if case:
            result = CaseResult.from_dict(case["result"])
            backend = self._backends.setdefault(result.backend, _Backend(case["baseline"], case["engines"]))
            backend.results[result.name] = result

    def pytest_sessionfinish(self) -> None:
        if self._results:
            results = [r.to_dict() for b in self._backends.values() for r in b.results.values()]
            self._results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        for name, backend in self._backends.items():
            if self._update and backend.baseline:
                _update(name, backend, backend.baseline)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, backend in sorted(self._backends.items()):
            results = backend.results.values()
            counts = ", ".join(f"{count} {label}" for label, count in summarize(results).items())
            terminalreporter.section(f"ONNX conformance: {name}")
            terminalreporter.write_line(f"{len(results)} cases: {counts}")
            if backend.baseline:
                terminalreporter.write_line(_compared(backend, backend.baseline, self._update))
            terminalreporter.write(_coverage(backend, headline_only=terminalreporter.verbosity < 0))


def _update(name: str, backend: _Backend, path: Path) -> None:
    """Write what this run knows; cases it did not run keep their label, cases ONNX no longer has go."""
    kept = Baseline.read(path).labels if path.exists() else {}
    labels = {n: label for n, label in {**kept, **backend.labels}.items() if find_case(n)}
    versions = {engine: installed_version(engine) or "not installed" for engine in backend.engines}
    Baseline(name, versions, labels).write(path)


def _compared(backend: _Backend, path: Path, updated: bool) -> str:
    if updated:
        return f"baseline written: {path}"
    if not path.exists():
        return f"no baseline yet: write {path} with --update-baselines"
    old = Baseline.read(path).labels
    lost, gained = len(worse(old, backend.labels)), len(worse(backend.labels, old))
    hint = "; keep it with --update-baselines" if gained else ""
    return f"against the baseline: {lost} worse, {gained} better{hint}"


def _coverage(backend: _Backend, *, headline_only: bool) -> str:
    text = io.StringIO()
    try:
        write_coverage(backend.results.values(), text)
    except ImportError as e:
        return f"no coverage report: {e}\n"
    if headline_only:
        return "".join(line for line in text.getvalue().splitlines(keepends=True) if line.startswith("Operators"))
    return text.getvalue()
