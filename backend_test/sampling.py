# SPDX-License-Identifier: Apache-2.0
"""Suites of presets that hand an engine the same as another preset: a sample of their cases runs, and all of them with `--whole-suites`.

`unit/test_same_targets.py` proves that the targets are the same. A test module says with `SAME_AS` whose suite is run in full, and may
have a function `runs_otherwise` for the cases that differ all the same.
"""

from __future__ import annotations

import zlib

import pytest

#: One case in so many is run, and each that quantizes.
SHARE = 16


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run all cases of suites whose preset hands an engine the same as another one"
    parser.addoption("--whole-suites", action="store_true", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--whole-suites"):
        return
    left = [item for item in items if not _is_to_run(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _is_to_run(item: pytest.Item) -> bool:
    module = getattr(item, "module", None)
    if not hasattr(module, "SAME_AS"):
        return True
    return _is_drawn(item.name) or getattr(module, "runs_otherwise", _never)(item.name)


def _never(name: str) -> bool:
    return False


def _is_drawn(name: str) -> bool:
    quantizes = any(part in name for part in ("quantize", "qlinear", "matmulinteger", "convinteger"))
    return quantizes or not name.endswith(("_cpu", "_cuda")) or zlib.crc32(name.encode()) % SHARE == 0
