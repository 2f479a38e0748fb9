# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime has one thread in the official suite and the tests of rewriting and quantizing, but with `--whole-suites`.

Their models are too small for two. The second waits for work by spinning: half of the processor time of a suite.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from onnx_multi_backend.engines.ort import threads

FOLDERS = [Path(__file__).parent / "unit" / name for name in ("adapt", "calibration", "special_values")]


def one(given: Any) -> dict[str, int]:
    """One thread, where the user names no number."""
    names_none = given is None or (isinstance(given, Mapping) and not any("intra_op" in name for name in given))
    return {"intra_op_num_threads": 1} if names_none else {}


def is_small(item: pytest.Item) -> bool:
    """Whether a test is one of these."""
    return hasattr(getattr(item, "obj", None), "onnx_about") or any(map(item.path.is_relative_to, FOLDERS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if item.config.getoption("--whole-suites") or not is_small(item):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "own", one)
        return (yield)
