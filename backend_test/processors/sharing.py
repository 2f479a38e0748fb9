# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: ``--share I/N`` runs the tests of one share, which their names decide."""

from __future__ import annotations

import pytest

from backend_test.processors.official import share_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="0/1", metavar="I/N", help="run the tests of this share, by their names")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    drawn = set(share_of([item.nodeid for item in items], config.getoption("--share")))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in drawn])
    items[:] = [item for item in items if item.nodeid in drawn]
