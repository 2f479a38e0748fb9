# SPDX-License-Identifier: Apache-2.0
"""Of tests that another one proves a sample runs.

- Suites of presets that hand an engine the same as another preset: all of their cases run with `--whole-suites`.
  `unit/test_same_targets.py` proves that the targets are the same. A test module says with `SAME_AS` whose suite is run in full, and may
  have a function `runs_otherwise` for the cases that differ all the same.
- Unit tests of a preset whose engine another environment holds in the same release, with `--proven-elsewhere PRESET`.
"""

from __future__ import annotations

import zlib

import pytest

#: One test in so many is run, and each case that quantizes.
SHARE = 24

#: Fixtures of `unit/conftest.py` that are one preset.
_FIXTURES = {"ort_cpu": "OrtCpu", "openvino": "Openvino", "openvino_ep": "OrtOpenvino", "cuda": "OrtCuda"}


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run all cases of suites whose preset hands an engine the same as another one"
    parser.addoption("--whole-suites", action="store_true", help=text)
    text = "run a sample of the unit tests with this parameter, which another environment runs; repeatable"
    parser.addoption("--proven-elsewhere", action="append", default=[], metavar="PRESET", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    elsewhere = set(config.getoption("--proven-elsewhere"))
    whole = config.getoption("--whole-suites")
    left = [item for item in items if not ((whole or _is_of_the_sample(item)) and _is_own(item, elsewhere))]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _is_of_the_sample(item: pytest.Item) -> bool:
    module = getattr(item, "module", None)
    if not hasattr(module, "SAME_AS"):
        return True
    return _is_drawn(item.name) or getattr(module, "runs_otherwise", _never)(item.name)


def _is_own(item: pytest.Item, elsewhere: set[str]) -> bool:
    """Whether a test is not of one of these presets alone, or is drawn all the same."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec else ()
    named = (getattr(value, "name", None) if isinstance(value, type) else value for value in values)
    given = {name for name in named if isinstance(name, str)}
    fixtures = _FIXTURES.keys() & {*given, *getattr(item, "fixturenames", ())}  # asked for by name, too
    presets = given | {_FIXTURES[name] for name in fixtures}
    others = (presets & {*_FIXTURES.values()}) - elsewhere
    return elsewhere.isdisjoint(presets) or bool(others) or zlib.crc32(item.nodeid.encode()) % SHARE == 0


def _never(name: str) -> bool:
    return False


def _is_drawn(name: str) -> bool:
    quantizes = any(part in name for part in ("quantize", "qlinear", "matmulinteger", "convinteger"))
    return quantizes or not name.endswith(("_cpu", "_cuda")) or zlib.crc32(name.encode()) % SHARE == 0
