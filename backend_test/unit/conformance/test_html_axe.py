# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing on the HTML page."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_test.unit.conformance.pages import Opener, operator
from onnx_multi_backend.conformance.report.changes import compare_reports
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.html import render_html


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(report: Report, visit: Opener, tmp_path: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed: install the extra 'test'"
    ).Axe()
    path = tmp_path / "index.html"
    path.write_text(render_html(report, compare_reports(report, report), "old.json"), encoding="utf-8")
    page = visit(path, width=width, scheme=scheme)
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    found = axe.run(page).response["violations"]
    operator(page, "Relu").click()
    page.locator(".case > summary").first.click()
    page.locator(".case[open] .result").first.wait_for()
    found += axe.run(page).response["violations"]
    assert not [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in found]
