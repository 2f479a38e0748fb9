# SPDX-License-Identifier: Apache-2.0
"""The official suite as pytest tests; `pytest_plugin` prints and writes the reports.

In a test module::

    globals().update(plug(MyBackend, module=__name__, expectations=Path("my_backend.toml")))
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnx_multi_backend.conformance.backend_ref import BackendLoadError, BackendRef
from onnx_multi_backend.conformance.baseline import Baseline, BaselineError
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import STOCK_CLASSES, Case
from onnx_multi_backend.conformance.expectation_file import ExpectationError
from onnx_multi_backend.conformance.expectations import Expectations
from onnx_multi_backend.conformance.foreign import versions_told
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.processor_facts import difference
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.conformance.suite import Suite
from onnx_multi_backend.host import processor
from onnx_multi_backend.host.versions import installed_version

Test = Callable[[Any], None]

NO_BACKEND = "name the backend: --onnx-backend package.module, or package.module.Class"


class Options:
    """What the command line asked for; set by `pytest_plugin`."""

    compare_with_baseline = True
    backend: str | None = None
    devices: Sequence[str] = ("CPU",)
    expectations: Path | None = None
    baseline: Path | None = None


def check_chosen() -> None:
    """Load what the command line names, so that what is wrong with it is one line, and no failed collection.

    Raises
    ------
    pytest.UsageError
        The backend cannot be loaded or lacks a device, or a file is malformed.
    """
    try:
        if Options.backend is not None:
            _chosen(Options.backend).load_for_devices()
        if Options.expectations is not None:
            Expectations.load(Options.expectations)
        if Options.baseline is not None:
            _read_baseline(Options.baseline)
    except (BackendLoadError, BaselineError, ExpectationError, OSError) as error:
        raise pytest.UsageError(str(error)) from error


def plug_chosen(module: str) -> dict[str, type[unittest.TestCase]]:
    """Make the test classes for the backend that the command line names.

    Raises
    ------
    pytest.UsageError
        It names none, or one that cannot be loaded; or a file that it names is malformed.
    """
    if Options.backend is None:
        raise pytest.UsageError(NO_BACKEND)
    check_chosen()
    ref = _chosen(Options.backend)
    return plug(
        ref.load(),
        module=module,
        name=ref.name,
        path=ref.path,
        devices=ref.devices,
        expectations=Options.expectations,
        baseline=Options.baseline,
    )


def _chosen(path: str) -> BackendRef:
    return BackendRef(path, devices=tuple(Options.devices))


def _read_baseline(path: Path) -> Baseline | None:
    return Baseline.read(path) if path.exists() and Options.compare_with_baseline else None


def plug(
    backend: Any,
    *,
    module: str,
    name: str | None = None,
    path: str | None = None,
    devices: Sequence[str] = ("CPU",),
    options: Mapping[str, Any] | None = None,
    expectations: Path | None = None,
    baseline: Path | None = None,
    engines: Sequence[str] = (),
    unusable: str | None = None,
) -> dict[str, type[unittest.TestCase]]:
    """Make test classes, named as ONNX names them, that run the official suite on a backend.

    A case that passes, passes; `unsupported` and `skip` are skipped with their reason; a failure that was expected
    is an xfail, and an expectation that no longer holds fails. So does a label worse than the baseline's.

    Parameters
    ----------
    backend : type[Backend] or module
        Anything with ONNX's backend interface.
    module : str
        The ``__name__`` of the test module.
    name : str, optional
        The name in reports; by default that of the class without ``Backend``.
    path : str, optional
        The dotted path in reports; needed for a backend that is neither a module nor a class.
    devices : sequence of str, default ("CPU",)
        The devices to run each case on.
    options : mapping, optional
        Passed to every ``prepare``.
    expectations : Path, optional
        A file as `onnx_multi_backend.conformance.expectations` describes it.
    baseline : Path, optional
        A file that ``--onnx-update-baselines`` writes; nothing is compared while it does not exist.
    engines : sequence of str
        Import names of the packages, besides onnx, whose versions the baseline records.
    unusable : str, optional
        Why the backend cannot be used on this host: then there is one test, and it skips with this reason.

    Returns
    -------
    dict of str to type[unittest.TestCase]
        For ``globals().update``.

    Raises
    ------
    ExpectationError, BaselineError
        A file is malformed.
    OptionError
        The backend is neither a module nor a class, and has no path.
    """
    if unusable is not None:
        return {"OnnxBackendTest": _class("OnnxBackendTest", module, {"test_backend_is_usable": _skip(unusable)})}
    known = Expectations.load(expectations) if expectations else Expectations()
    before = _read_baseline(baseline) if baseline else None
    suite = Suite(backend, devices, name, options)
    own = path or BackendRef.of(backend).path
    ref = BackendRef(own, devices=tuple(devices), options=options or {})
    stale = known.stale([case.name for case in suite.cases])
    origin = {
        "backend": suite.name,
        "baseline": str(baseline) if baseline else None,
        "run": {
            "path": ref.path,
            "devices": list(ref.devices),
            "options": ref.options_as_json,
            "versions": {name: installed_version(name) or "" for name in engines} or versions_told(backend, ref.path),
            "expectations": str(expectations) if expectations else "",
            "problems": stale,
        },
    }
    bodies: dict[str, dict[str, Test]] = {class_name: {} for class_name in STOCK_CLASSES.values()}
    for case in suite.cases:
        bodies[STOCK_CLASSES[case.kind]][case.name] = _test(suite, case, known, before, origin)
    bodies["OnnxBackendExpectationsTest"] = {"test_every_expectation_matches_a_case": _no_stale(stale)}
    return {class_name: _class(class_name, module, tests) for class_name, tests in bodies.items()}


def _class(name: str, module: str, tests: dict[str, Test]) -> type[unittest.TestCase]:
    return type(name, (unittest.TestCase,), {"__module__": module, "onnx_result": None, **tests})


def _skip(reason: str) -> Test:
    def test(self: Any) -> None:
        pytest.skip(reason)

    return test


def _no_stale(stale: Sequence[str]) -> Test:
    def test(self: Any) -> None:
        if stale:
            pytest.fail("\n".join(stale), pytrace=False)

    return test


def _test(suite: Suite, case: Case, known: Expectations, before: Baseline | None, origin: dict[str, Any]) -> Test:
    def test(self: Any) -> None:
        result = known.skipped(suite.name, case.name, case.kind) or known.judge(suite.run(case.name))
        if before is not None and not result.unexpected:
            result = replace(result, unexpected=_worse_than(before, result, known))
        self.onnx_result = result.to_dict()
        _conclude(result)

    def about() -> dict[str, Any]:
        facts = CaseFacts.of(case.kind, suite.model(case.name))
        return {**origin, "name": case.name, "kind": case.kind, "facts": facts.to_dict()}

    test.__name__ = case.name
    vars(test)["onnx_about"] = about
    return test


def _worse_than(before: Baseline, result: CaseResult, known: Expectations) -> str:
    old = before.lost(result.name, result.label)
    if old is None or known.new_on_this_processor(result, before.processor):
        return ""
    now = {name: installed_version(name) for name in before.engines}
    moved = [f"{n} {v}, now {now[n]}" for n, v in before.engines.items() if now[n] != v]
    made_with = f" (the baseline was made with {'; '.join(moved)})" if moved else ""
    if elsewhere := difference(before.processor, processor.current()):
        made_with += f" ({elsewhere})"
    return f"was {old}, is {result.label}: {result.error or result.reason}{made_with}"


def _conclude(result: CaseResult) -> None:
    if result.unexpected:
        details = f"\n{result.error}" if result.error else ""
        pytest.fail(f"{result.backend} {result.name}: {result.unexpected}{details}", pytrace=False)
    if result.label == Label.SKIP:
        pytest.skip(result.reason)
    if result.label == Label.UNSUPPORTED:
        pytest.skip(f"unsupported: {result.reason}")
    if result.label == Label.XFAIL:
        pytest.xfail(result.reason)
