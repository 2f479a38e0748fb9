# SPDX-License-Identifier: Apache-2.0
"""A browser, where one is installed."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from backend_test.unit.conformance.browser import Visitor, chromium
from backend_test.unit.conformance.pages import Opener


@pytest.fixture(scope="module")
def visitor() -> Generator[Visitor]:
    with chromium() as browser:
        yield Visitor(browser)


@pytest.fixture
def visit(visitor: Visitor) -> Iterator[Opener]:
    """Open a page; at the end it must have had no error and asked for nothing but itself."""
    yield visitor.open
    visitor.leave()
