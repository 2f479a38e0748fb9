# SPDX-License-Identifier: Apache-2.0
"""What runs on one processor, in a process that may be emulated.

- ``python -m backend_test.processors.within suite CASES OUT PRESET[=REWRITTEN] ... [--share I/N]``
- ``python -m backend_test.processors.within pytest ...``
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backend_test.processors import official, rewritten
from backend_test.processors.emulation import enter
from backend_test.processors.official import adopt_cases, share_of
from onnx_multi_backend.conformance import Baseline, CaseResult, Label, Plan, Report, Selection
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import official_cases
from onnx_multi_backend.conformance.run import run_conformance
from onnx_multi_backend.conformance.workers.worker import fork_workers
from onnx_multi_backend.errors import DeviceUnavailableError
from onnx_multi_backend.host import processor

#: Seconds that a case may take: emulated ones take ten times as long, and share two cores.
TIMEOUT = 1200.0


@dataclass(frozen=True)
class Named(Selection):
    """The cases of these names."""

    names: Collection[str] = ()

    def choose(self, cases: Mapping[str, CaseFacts]) -> list[str]:
        return [name for name in cases if name in self.names]


def run_suites(cases: Path, out: Path, presets: Mapping[str, Path | None], *, share: str = "") -> int:
    """Run the official suite on some presets, hold it to the baselines, and write a report of each.

    Parameters
    ----------
    cases : Path
        What `official.write_cases` wrote.
    out : Path
        The folder that gets a folder with the report of each preset.
    presets : mapping of str to Path or None
        What `making` wrote for each preset.
    share : str
        Only the cases that pass adapted are run, by the baseline, and of them this share; empty for all cases.

    Returns
    -------
    int
        How many results are not as expected.

    Raises
    ------
    OnnxMultiBackendError
        A preset cannot be used.
    """
    adopt_cases(cases)
    official_cases()
    fork_workers()  # a forked worker is emulated too, and has the cases in memory
    print(f"on {processor.current()}", flush=True)
    unexpected = 0
    for preset, made in presets.items():
        with rewritten.Replayed(made):
            report = _run_suite(preset, share)
        for case in report.unexpected:
            print(f"{preset} {case.name}: {case.unexpected}", flush=True)
        print(f"{preset}: {sum(c.label.is_pass for c in report.cases)} of {len(report.cases)} cases pass", flush=True)
        report.write(out / preset / "report.json")
        unexpected += len(report.unexpected)
    return unexpected


def _run_suite(preset: str, share: str) -> Report:
    plan, baseline = _plan(preset)
    names = [case for case, label in baseline.labels.items() if label == Label.ADAPTED]
    if share and not names:
        raise SystemExit(f"{preset}: no baseline tells which cases pass adapted")
    chosen = Named(names=share_of(names, share)) if share else None
    report = run_conformance([plan], chosen, jobs=1, timeout=TIMEOUT)
    cases_run = report.cases
    if processor.current().emulator and (dead := [case.name for case in cases_run if case.label == Label.CRASH]):
        # QEMU's threads now and then end a process that a second one survives; a true crash ends that too.
        again = run_conformance([plan], Named(names=dead), jobs=1, timeout=TIMEOUT)
        second = {case.name: case for case in again.cases}
        cases_run = tuple(second.get(case.name, case) for case in cases_run)
    return replace(report, cases=tuple(_held_to(baseline, plan, case) for case in cases_run))


def _plan(name: str) -> tuple[Plan, Baseline]:
    """Plan a preset in a process of its own: this one, which others are forked from, loads no engine."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(official.plan, (name,))


def _held_to(baseline: Baseline, plan: Plan, case: CaseResult) -> CaseResult:
    old = baseline.lost(case.name, case.label)
    if case.unexpected or old is None or plan.expectations.new_on_this_processor(case, baseline.processor):
        return case
    return replace(case, unexpected=f"was {old}, is {case.label}: {case.error or case.reason}")


def main(arguments: Sequence[str]) -> int:
    enter()
    if arguments[0] == "pytest":
        import pytest

        return int(pytest.main(list(arguments[1:])))
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("presets", nargs="+", metavar="PRESET[=REWRITTEN]")
    parser.add_argument("--share", default="")
    given = parser.parse_args(arguments[1:])
    named = [word.partition("=") for word in given.presets]
    presets = {name: Path(made) if made else None for name, _, made in named}
    try:
        return int(run_suites(given.cases, given.out, presets, share=given.share) > 0)
    except DeviceUnavailableError as error:
        print(error, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
