# SPDX-License-Identifier: Apache-2.0
"""Counting calls instead of timing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: list[str] | None = None) -> list[str]:
    """The calls of a function of a module, or of a method of a class, from here on: its name for each, in a list that may be shared."""
    calls = [] if calls is None else calls
    real: Callable[..., Any] = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        calls.append(name)
        return real(*given, **named)

    monkeypatch.setattr(owner, name, call)
    return calls
