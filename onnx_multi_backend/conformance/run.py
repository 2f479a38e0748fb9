# SPDX-License-Identifier: Apache-2.0
"""Running the official suite in this process, one case after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.conformance.cases import Case
from onnx_multi_backend.conformance.expectations import Expectations
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.conformance.suite import Suite


def run_suite(
    backend: Any,
    name: str | None = None,
    *,
    devices: Sequence[str] = ("CPU",),
    options: Mapping[str, Any] | None = None,
    select: Callable[[Case], bool] | None = None,
    on_result: Callable[[CaseResult], None] | None = None,
    expectations: Expectations | None = None,
) -> list[CaseResult]:
    """Run the official suite on a backend.

    Parameters
    ----------
    backend : type[Backend] or module
        Anything with ONNX's backend interface.
    name : str, optional
        The backend's name in the results; by default that of the class without ``Backend``.
    devices : sequence of str, default ("CPU",)
        The devices to run each case on.
    options : mapping, optional
        Passed to every ``prepare``.
    select : callable, optional
        Whether to run a case; by default all are run.
    on_result : callable, optional
        Called with each result as it comes.
    expectations : Expectations, optional
        Cases they skip are not run, failures they expect are labelled `xfail`.

    Returns
    -------
    list of CaseResult
        In ONNX's order.
    """
    suite, expected = Suite(backend, devices, name, options), expectations or Expectations()
    results = []
    for case in suite.cases:
        if select is not None and not select(case):
            continue
        skipped = expected.skipped(suite.name, case.name, case.kind)
        result = skipped or expected.judge(suite.run(case.name)).result
        results.append(result)
        if on_result is not None:
            on_result(result)
    return results
