# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that looks at pages, where one is installed."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless",
    "--no-sandbox",  # a container lets nobody make one
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Generator[Any]:
    """Start the browser; skips the test where it or playwright is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: install the extra 'test'")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


class Visitor:
    """Opens pages from files, and holds what went wrong there; a page for each screen, as new ones take time."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._pages: dict[tuple[int, str], Any] = {}
        self._visits = itertools.count()
        self._opened: set[str] = set()
        self._requested: set[str] = set()
        self._problems: list[str] = []

    def open(self, file: Path, *, width: int = 1280, scheme: str = "light", address: str = "") -> Any:
        """Open a file on a screen."""
        if (width, scheme) not in self._pages:
            self._pages[width, scheme] = self._page(width, scheme)
        page = self._pages[width, scheme]
        url = f"{file.as_uri()}?{next(self._visits)}"  # a new address, so that the page is loaded anew
        self._opened.add(url)
        page.goto(url + address)
        return page

    def leave(self) -> None:
        """See that the pages said nothing and asked for nothing but themselves, and let them forget what they kept."""
        for page in self._pages.values():
            page.evaluate("localStorage.clear()")
        problems, requested, opened = [*self._problems], {*self._requested}, {*self._opened}
        for seen in (self._problems, self._requested, self._opened):
            seen.clear()
        assert not problems
        assert requested == opened

    def _page(self, width: int, scheme: str) -> Any:
        size = {"width": width, "height": 900 if width > 600 else 844}
        context = self._browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", lambda message: self._problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self._problems.append(str(error)))
        page.on("dialog", self._on_dialog)
        page.on("request", lambda request: self._on_request(request.url.partition("#")[0]))
        return page

    def _on_dialog(self, dialog: Any) -> None:
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, url: str) -> None:
        if not url.startswith(("data:", "about:")):
            self._requested.add(url)


#: How much lighter one of text and background is than the other, as WCAG 2 counts; for each element its text too.
CONTRASTS = """elements => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = color => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  };
  const luminance = color => {
    const [r, g, b] = [...rgba(color)].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = element => {
    const color = getComputedStyle(element).backgroundColor;
    return rgba(color)[3] ? color : element.parentElement ? behind(element.parentElement) : "white";
  };
  return elements.filter(element => element.checkVisibility()).map(element => {
    const [dark, light] = [getComputedStyle(element).color, behind(element)].map(luminance).sort((a, b) => a - b);
    return [(light + .05) / (dark + .05), element.textContent.trim()];
  });
}"""
