# SPDX-License-Identifier: Apache-2.0
"""Running the official suite on several backends, into one report."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx_multi_backend.conformance.backend_ref import BackendRef
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import STANDARD_DEVICES, Case, case_name
from onnx_multi_backend.conformance.expectations import Expectations
from onnx_multi_backend.conformance.interrupts import uninterrupted
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.conformance.selection import Selection
from onnx_multi_backend.conformance.workers import (
    MAX_TIMEOUT,
    TIMEOUT,
    Worker,
    describe_cases,
    load_worker,
    run_in_workers,
)
from onnx_multi_backend.errors import OptionError


@dataclass(frozen=True)
class Plan:
    """One backend to run, and what is expected of it.

    Parameters
    ----------
    backend : BackendRef
    expectations : Expectations
    source : str
        The file of the expectations; empty without one.
    strict : bool, default True
        Whether an expectation that does not hold is a failure of the run.
    preset : str
        The preset's name; empty for a backend that is not a preset.
    versions : mapping of str to str, optional
        Of the packages that compute; by default what the backend says of itself (`versions_told`), or else of the
        distribution that its module comes from.
    """

    backend: BackendRef
    expectations: Expectations = field(default_factory=Expectations)
    source: str = ""
    strict: bool = True
    preset: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


class Observer:
    """Is called as a run goes on; this one does nothing."""

    def started(self, plan: Plan, total: int) -> None:
        """`total` cases of a backend are run next."""

    def result(self, result: CaseResult) -> None:
        """A case is done."""

    def finished(self) -> None:
        """The backend is done, or the run was stopped."""


def run_conformance(
    plans: Sequence[Plan],
    selection: Selection | None = None,
    *,
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    memory: int | None = None,
    observer: Observer | None = None,
) -> Report:
    """Run the official suite on backends, one after the other, each case in a worker process.

    A script that calls this must be importable without running it again: ``if __name__ == "__main__":``, as for
    everything that starts processes in Python.

    Parameters
    ----------
    plans : sequence of Plan
        Their backends' names must differ.
    selection : Selection, optional
        The cases to run; all of them when None.
    jobs : int, optional
        Processes at once; the cores that this process may use when None.
    timeout : float
        Seconds that a case may take.
    memory : int, optional
        Bytes that a process may hold, on Linux. A case that needs more fails or crashes, as its backend takes it.
    observer : Observer, optional

    Returns
    -------
    Report
        After a keyboard interrupt it holds what was known by then, and is marked ``interrupted``.

    Raises
    ------
    OptionError
        The selection is malformed, or selects nothing; or the timeout is not a time that a process can wait.
    BackendLoadError
        A backend cannot be loaded, or does not support its devices. Each is loaded once before any case runs; one that
        cannot be loaded again later is in the report.
    """
    if not 0 < timeout <= MAX_TIMEOUT:
        raise OptionError(
            f"A timeout is more than 0 and at most {MAX_TIMEOUT:g} seconds, which is a day; not {timeout:g}."
        )
    observer, selection = observer or Observer(), selection or Selection()
    selection.check()
    environment = Environment.current()
    backends: dict[str, BackendRun] = {}
    results: list[CaseResult] = []
    models: dict[str, CaseFacts] = {}
    interrupted = False
    try:
        facts = describe_cases()
        chosen = [_choose(plan, facts, selection) for plan in plans]
        with _loaded(plans, timeout, memory) as (first, told):
            for plan, known in zip(plans, chosen, strict=True):
                models |= known
                backends[plan.backend.name] = _describe(plan, told[plan.backend.name], facts, environment)
                found: dict[str, CaseResult] = {}
                observer.started(plan, len(known))
                try:
                    cases = [Case(name, case.kind) for name, case in known.items()]
                    worker = first if plan is plans[0] else None
                    for result in _results(plan, cases, jobs or environment.cores, timeout, memory, worker):
                        found[result.name] = result
                        observer.result(result)
                finally:
                    observer.finished()
                    results += [found[name] for name in known if name in found]
    except KeyboardInterrupt:
        interrupted = True
    return Report(environment, backends, tuple(results), models, interrupted)


def _choose(plan: Plan, facts: Mapping[str, CaseFacts], selection: Selection) -> dict[str, CaseFacts]:
    """Name the cases for the plan's devices, and choose among them."""
    known = {case_name(name, d): case for name, case in facts.items() for d in plan.backend.devices}
    return {name: known[name] for name in selection.choose(known)}


@contextlib.contextmanager
def _loaded(
    plans: Sequence[Plan], timeout: float, memory: int | None
) -> Generator[tuple[Worker | None, dict[str, Mapping[str, str]]]]:
    """Load each backend once, keep the worker of the first, which is used next, and what each says of its version."""
    first = None
    told: dict[str, Mapping[str, str]] = {}
    try:
        for plan in reversed(plans):
            if first:
                first.end()
            first = load_worker(plan.backend, timeout, memory)
            told[plan.backend.name] = first.versions
        yield first, told
    finally:
        with uninterrupted():
            if first:
                first.end()


def _results(
    plan: Plan, cases: Sequence[Case], jobs: int, timeout: float, memory: int | None, first: Worker | None
) -> Iterator[CaseResult]:
    to_run = []
    for case in cases:
        skipped = plan.expectations.skipped(plan.backend.name, case.name, case.kind)
        if skipped:
            yield skipped
        else:
            to_run.append(case)
    for result in run_in_workers(plan.backend, to_run, jobs=jobs, timeout=timeout, memory=memory, first=first):
        yield plan.expectations.judge(result, strict=plan.strict)


def _describe(
    plan: Plan, told: Mapping[str, str], facts: Mapping[str, CaseFacts], environment: Environment
) -> BackendRun:
    devices = {*STANDARD_DEVICES, *plan.backend.devices}
    known = [case_name(name, device) for name in facts for device in devices]
    return BackendRun.of(
        plan.backend,
        environment,
        versions=plan.versions or told,
        preset=plan.preset,
        expectations=plan.source,
        problems=plan.expectations.stale(known) if plan.strict else (),
    )
