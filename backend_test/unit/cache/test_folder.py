# SPDX-License-Identifier: Apache-2.0
"""Where the cache is and how large it may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_multi_backend.cache.folder import resolve, size_limit
from onnx_multi_backend.errors import OptionError


@pytest.mark.parametrize(
    ("cache_dir", "variable", "slow_builds", "expected"),
    [
        (None, None, False, None),
        (None, "/env", False, "/env"),
        ("/given", "/env", False, "/given"),
        (False, "/env", True, None),
        (None, "", False, None),
        (None, None, True, "/home/user/.cache/onnx_multi_backend"),
        (None, "/env", True, "/env"),
    ],
)
def test_where(
    monkeypatch: pytest.MonkeyPatch,
    cache_dir: str | bool | None,
    variable: str | None,
    slow_builds: bool,
    expected: str,
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/user/.cache")
    monkeypatch.delenv("ONNX_MULTI_BACKEND_CACHE_DIR", raising=False)
    if variable is not None:
        monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_DIR", variable)
    assert resolve(cache_dir, slow_builds=slow_builds) == (None if expected is None else Path(expected))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", 4 << 30),
        ("0", 0),
        ("1000", 1000),
        ("500MB", 500_000_000),
        ("1.5 GiB", 3 << 29),
        ("2g", 2_000_000_000),
        ("64kib", 65536),
    ],
)
def test_how_large(monkeypatch: pytest.MonkeyPatch, given: str, expected: int) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_SIZE", given)
    assert size_limit() == expected


@pytest.mark.parametrize("given", ["much", "-1", "4 PB", "GiB"])
def test_a_size_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_SIZE", given)
    with pytest.raises(OptionError, match=r"ONNX_MULTI_BACKEND_CACHE_SIZE is a size such as 500MB or 4GiB"):
        size_limit()
