# SPDX-License-Identifier: Apache-2.0
"""ONNX's coverage report counts what passed, for one backend."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from backend_test.unit.conformance.toys import PlainBackend, TalkingBackend
from onnx_multi_backend.conformance import CaseResult, run_suite, write_coverage

pytest.importorskip("tabulate")
NAMES = {"test_abs_cpu", "test_neg_cpu", "test_sign_cpu", "test_floor_cpu", "test_tan_cpu", "test_selu_cpu"}


def run(backend: type, name: str) -> list[CaseResult]:
    return run_suite(backend, name, select=lambda c: c.name in NAMES)


def test_only_passes_are_passed_and_attributes_are_counted() -> None:
    text = io.StringIO()
    write_coverage(run(TalkingBackend, "toy"), text)
    assert "Operators (passed/loaded/total): 4/6/" in text.getvalue()
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert ["Selu", "alpha:", "1"] in lines
    assert ["gamma:", "1"] in lines
    assert not any(line[:1] == ["Floor"] for line in lines)


def test_two_backends_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="per backend, got results of one, two"):
        write_coverage(run(PlainBackend, "one") + run(TalkingBackend, "two"), io.StringIO())


def test_the_scoreboard_has_a_column_for_each_backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CSVDIR", str(tmp_path))
    write_coverage(run(PlainBackend, "one"), io.StringIO())
    write_coverage(run(TalkingBackend, "two"), io.StringIO())
    rows = {row["Op"]: row for row in csv.DictReader((tmp_path / "nodes.csv").open())}
    assert (rows["Floor"]["one"], rows["Floor"]["two"]) == ("Passed!", "Failed!")
    assert (rows["Abs"]["one"], rows["Abs"]["two"]) == ("Passed!", "Passed!")
