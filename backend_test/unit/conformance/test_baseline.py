# SPDX-License-Identifier: Apache-2.0
"""A baseline is read as it was written, and what got worse is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_multi_backend.conformance import Baseline, BaselineError, Label, worse


def test_a_baseline_is_one_case_a_line_sorted_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "baselines" / "toy.json"
    written = Baseline("toy", {"onnx": "1.23.2"}, {"test_b": Label.NATIVE, "test_a": Label.FAIL})
    written.write(path)
    lines = path.read_text().splitlines()
    assert lines[5:8] == ['  "cases": {', '    "test_a": "fail",', '    "test_b": "native"']
    assert Baseline.read(path) == written


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"backend": "x", "engines": {}, "cases": {"a": "great"}}'])
def test_a_malformed_baseline_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "toy.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match="toy.json"):
        Baseline.read(path)


def test_labels_are_ordered_from_native_to_crash() -> None:
    ordered = [Label.NATIVE, Label.ADAPTED, Label.FALLBACK, Label.UNSUPPORTED, Label.SKIP, Label.XFAIL, Label.FAIL]
    for i, better in enumerate(ordered):
        assert not better.is_worse_than(better)
        for lesser in ordered[i + 1 :]:
            assert lesser.is_worse_than(better)
            assert not better.is_worse_than(lesser)
    assert not Label.PASS.is_worse_than(Label.NATIVE)
    assert not Label.CRASH.is_worse_than(Label.FAIL)
    assert not Label.TIMEOUT.is_worse_than(Label.CRASH)


def test_the_passes_are_the_first_four() -> None:
    assert {label for label in Label if label.is_pass} == {"native", "adapted", "fallback", "pass"}


def test_only_cases_in_both_can_be_worse() -> None:
    old = {"a": Label.NATIVE, "b": Label.FAIL, "gone": Label.NATIVE, "same": Label.ADAPTED}
    new = {"a": Label.FALLBACK, "b": Label.NATIVE, "new": Label.FAIL, "same": Label.ADAPTED}
    assert worse(old, new) == [("a", Label.NATIVE, Label.FALLBACK)]
