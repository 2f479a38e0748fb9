# SPDX-License-Identifier: Apache-2.0
"""Everything that changes the result changes the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from onnx_multi_backend.cache import host
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.host import processor

PARTS: tuple[Any, ...] = ("model", "onnxruntime 1.31.1", "CPU", ("option", 1))


@pytest.mark.parametrize(
    "other",
    [
        ("another", *PARTS[1:]),
        ("model", "onnxruntime 1.31.2", *PARTS[2:]),
        (*PARTS[:2], "GPU", PARTS[3]),
        (*PARTS[:3], ("option", "1")),
        PARTS[:3],
        (*PARTS, None),
    ],
)
def test_every_part_counts(other: tuple[Any, ...]) -> None:
    assert make_key(*PARTS) == make_key(*PARTS)
    assert make_key(*other) != make_key(*PARTS)


@pytest.mark.parametrize("what", ["cpu", "packages"])
def test_the_cpu_and_the_packages_count(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    known: Callable[[], tuple[str, ...]] = getattr(host, what)
    first = make_key(*PARTS)
    monkeypatch.setattr(host, what, lambda: (*known()[:-1], "other"))
    assert make_key(*PARTS) != first


def test_the_cpu_is_told_by_its_instruction_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    here = processor.current()
    assert here.instruction_sets <= set(host.cpu())
    first = make_key(*PARTS)
    fewer = dataclasses.replace(here, instruction_sets=frozenset(sorted(here.instruction_sets)[1:]))
    monkeypatch.setattr(processor, "current", lambda: fewer)
    assert make_key(*PARTS) != first, "an emulated processor shares no entry with its host"
