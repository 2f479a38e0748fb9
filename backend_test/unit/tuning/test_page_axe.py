# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing on the page, and it never scrolls sideways."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_test.unit.conformance.pages import Opener
from backend_test.unit.tuning import made
from onnx_multi_backend.tuning.comparing import compare


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", ["bench", "tune"])
def test_axe_finds_nothing(visit: Opener, tmp_path: Path, width: int, scheme: str, kind: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed: install the extra 'test'"
    ).Axe()
    report = made.bench() if kind == "bench" else made.tune()
    path = tmp_path / "report.html"
    path.write_text(report.to_html(compare(report, report)), encoding="utf-8")
    page = visit(path, width=width, scheme=scheme)
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.run(page).response["violations"]
    assert not [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in found]
    assert page.locator(".plot:visible").count() == (2 if kind == "bench" else 3)


_HIDDEN = "() => [...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"


@pytest.mark.parametrize("kind", ["bench", "tune"])
def test_the_tables_fit_a_desktop_and_tell_where_they_scroll(visit: Opener, tmp_path: Path, kind: str) -> None:
    report = made.bench() if kind == "bench" else made.tune()
    path = tmp_path / "report.html"
    path.write_text(report.to_html(compare(report, report)), encoding="utf-8")
    page = visit(path, width=1280)
    assert set(page.evaluate(_HIDDEN)) == {0}
    assert not page.locator(".sideways").is_visible()
    page = visit(path, width=390)
    assert max(page.evaluate(_HIDDEN)) > 0
    assert "scrolls sideways" in page.locator(".sideways:visible").inner_text()
    shade = "() => getComputedStyle(document.querySelector('.scroll')).backgroundAttachment"
    assert page.evaluate(shade) == "local, scroll"
