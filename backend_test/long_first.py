# SPDX-License-Identifier: Apache-2.0
"""Files with tests of many seconds run first: at the end of a run one process would wait for the other's last test."""

from __future__ import annotations

import pytest

LONG = (
    "unit/cli/test_conformance.py",
    "unit/conformance/test_labels.py",
    "unit/conformance/test_workflow.py",
    "unit/search/test_searches.py",
    "unit/tuning/test_tune.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.partition("::")[0].endswith(LONG))
