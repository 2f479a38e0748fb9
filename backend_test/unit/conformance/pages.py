# SPDX-License-Identifier: Apache-2.0
"""What the tests of the HTML page ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: An error that becomes a script where a page takes it for markup.
HOSTILE = "</script><img src=x onerror=alert(1)>\n<!--<script>alert(2)</script> {{ 7 * 7 }} \u2028 \udc80 'end'"

Opener = Callable[..., Any]


def shown(page: Any) -> list[str]:
    """The operators in the table."""
    return visible_texts(page, "button.operator")


def visible_texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).evaluate_all("all => all.filter(e => e.checkVisibility()).map(e => e.textContent)")


def operator(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def cell(page: Any, name: str, backend: int) -> Any:
    return page.get_by_role("row").filter(has=operator(page, name)).locator("td").nth(backend).locator("button")


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.textContent")
