# SPDX-License-Identifier: Apache-2.0
"""A foreign backend for the tests of the conformance package, and a browser that shows a report's page."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from backend_test.unit.conformance.browser import Visitor, chromium
from backend_test.unit.conformance.pages import HOSTILE, Opener
from backend_test.unit.conformance.sample_report import sample_report
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.html import render_html
from onnx_multi_backend.conformance.results import CaseResult, PlacedNode


@pytest.fixture
def onnxruntime_backend() -> ModuleType:
    """ONNX Runtime's own backend."""
    backend: ModuleType = pytest.importorskip("onnxruntime.backend")
    if not backend.supports_device("CPU"):
        pytest.skip("this build of ONNX Runtime says it does not support CPU")
    return backend


@pytest.fixture(scope="module")
def report() -> Report:
    """The sample, with a hostile error, with Relu on another device, and with a backend of many nodes."""
    made = sample_report(interrupted=True)
    cases = [replace(c, error=HOSTILE) if c.error.startswith("AssertionError: a|b") else c for c in made.cases]
    placement = tuple(PlacedNode(f"n{i}", "Conv", "", "CUDAExecutionProvider") for i in range(3))
    relu = CaseResult("OrtCuda", "test_relu_cuda", "node", Label.FALLBACK, "Relu on CPU", (), placement, 1.25)
    cuda = replace(made.backends["OrtCpu"], name="OrtCuda", preset="OrtCuda", devices=("CUDA",))
    models = {**made.models, "test_relu_cuda": made.models["test_relu_cpu"]}
    return replace(made, cases=(*cases, relu), backends={**made.backends, "OrtCuda": cuda}, models=models)


@pytest.fixture(scope="module")
def visitor() -> Generator[Visitor]:
    with chromium() as browser:
        yield Visitor(browser)


@pytest.fixture(scope="module")
def file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("html") / "index.html"
    path.write_text(render_html(report), encoding="utf-8")
    return path


@pytest.fixture
def visit(visitor: Visitor, file: Path) -> Iterator[Opener]:
    """Open the page; at the end it must have had no error and asked for nothing but itself."""
    yield lambda path=file, **settings: visitor.open(path, **settings)
    visitor.leave()
