# SPDX-License-Identifier: Apache-2.0
"""ONNX's operator coverage report, for one backend at a time.

The stock pytest plugin has one coverage object a process, so several backends are reported as their union; and it
counts what pytest calls passed. Here each backend has its own, and only a label that is a pass counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import IO

from onnx_multi_backend.conformance.cases import environment, load_model
from onnx_multi_backend.conformance.results import CaseResult


def write_coverage(results: Iterable[CaseResult], writer: IO[str]) -> None:
    """Write ONNX's own text report: ``Operators (passed/loaded/total)`` and the operators with their attributes.

    Operators are loaded if a case of the results has them, and passed if a case that passed has them.
    With the environment variable ``CSVDIR`` set ONNX writes the files of its scoreboard there too, under the
    backend's name.

    Parameters
    ----------
    results : iterable of CaseResult
        The results of one backend.
    writer : file-like
        Where to write the text.

    Raises
    ------
    ValueError
        The results are of several backends.
    ImportError
        pytest or tabulate, which ONNX's report needs, is missing.
    """
    from onnx.backend.test.report.coverage import Coverage  # needs tabulate, and its package pytest

    results = list(results)
    names = {r.backend for r in results}
    if len(names) > 1:
        raise ValueError(f"coverage is per backend, got results of {', '.join(sorted(names))}")
    coverage = Coverage()
    for result in results:
        model = load_model(result.name)
        is_real = result.kind == "real"
        coverage.add_proto(model, "loaded", is_real)
        if result.label.is_pass:
            coverage.add_proto(model, "passed", is_real)
    with environment("BACKEND", *names) if names and "CSVDIR" in os.environ else contextlib.nullcontext():
        coverage.report_text(writer)
