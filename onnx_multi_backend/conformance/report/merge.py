# SPDX-License-Identifier: Apache-2.0
"""Joining reports of several environments: one environment holds one ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.report.document import BackendRun, Report, ReportError
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.results import CaseResult


def merge(reports: Sequence[Report], environment: Environment | None = None, *, sources: Sequence[str] = ()) -> Report:
    """Join reports into one; each backend keeps the versions and the environment that it ran with.

    A backend that stands in several reports is named with what sets it apart: its options, its engine's version, as in
    ``OrtCpu (onnxruntime 1.31.1)``, its devices; and where these do not, the processor that it ran on.

    Parameters
    ----------
    reports : sequence of Report
    environment : Environment, optional
        Of the report that is made; by default of this process.
    sources : sequence of str, optional
        The reports' files, for messages.

    Raises
    ------
    ReportError
        Nothing sets two of the same name apart.
    """
    counts = Counter(name for report in reports for name in report.backends)
    backends: dict[str, BackendRun] = {}
    cases: list[CaseResult] = []
    models: dict[str, CaseFacts] = {}
    held_by: dict[str, int] = {}
    for place, report in enumerate(reports):
        rivals = {name: [r.backends[name] for r in reports if name in r.backends] for name in report.backends}
        for name, backend in report.backends.items():
            new = name if counts[name] == 1 else _told_apart(backend, rivals[name])
            if new in backends:
                where = f": {sources[held_by[new]]} and {sources[place]}" if sources else ""
                raise ReportError(
                    f"{name!r} is in several of the reports with the same options, versions and processor{where}. "
                    "Leave one out; parts of one suite, run apart, are not joined."
                )
            held_by[new] = place
            backends[new] = replace(backend, name=new)
            cases += [replace(case, backend=new) for case in report.of(name)]
        models |= report.models
    interrupted = any(report.interrupted for report in reports)
    return Report(environment or Environment.current(), backends, tuple(cases), models, interrupted)


def _told_apart(backend: BackendRun, rivals: Sequence[BackendRun]) -> str:
    words = _setting_apart(backend, rivals)
    alike = [r.environment for r in rivals if _setting_apart(r, rivals) == words]
    words += _processor(backend.environment, alike)
    return f"{backend.name} ({', '.join(words)})" if words else backend.name


def _setting_apart(backend: BackendRun, rivals: Sequence[BackendRun]) -> list[str]:
    words = [f"{name}={value}" for name, value in backend.options.items() if _differ(name, [r.options for r in rivals])]
    if len({r.engine for r in rivals}) > 1:
        words.append(backend.engine)
    if len({r.devices for r in rivals}) > 1:
        words.append("on " + ", ".join(backend.devices))
    return words


def _processor(environment: Environment, rivals: Sequence[Environment]) -> list[str]:
    """Name and level, and all that is known where these are another's too."""
    if len({e.hardware for e in rivals}) == 1:
        return []
    names = Counter(map(_short, rivals))
    return [_short(environment)] if names[_short(environment)] == 1 else [environment.hardware]


def _short(environment: Environment) -> str:
    level = environment.processor.level if environment.processor else ""
    return f"{environment.cpu}, {level}" if level else environment.cpu


def _differ(name: str, options: Sequence[Mapping[str, object]]) -> bool:
    return any(o.get(name) != options[0].get(name) for o in options)
