# SPDX-License-Identifier: Apache-2.0
"""A baseline is read as it was written, and what got worse is found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_multi_backend.conformance import Baseline, BaselineError, Label, worse
from onnx_multi_backend.conformance.processor_facts import difference
from onnx_multi_backend.host.processor import Processor, current

HASWELL = Processor("GenuineIntel", 6, 60, "Core i7", frozenset({"sse4_2", "avx2"}))


def test_a_baseline_is_one_case_a_line_sorted_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "baselines" / "toy.json"
    written = Baseline("toy", {"onnx": "1.23.2"}, {"test_b": Label.NATIVE, "test_a": Label.FAIL})
    written.write(path)
    lines = path.read_text().splitlines()
    assert lines[5:8] == ['  "cases": {', '    "test_a": "fail",', '    "test_b": "native"']
    assert Baseline.read(path) == written


def test_it_names_the_processor_and_one_without_it_reads_too(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    written = Baseline("toy", {"onnx": "1.23.2"}, {"test_a": Label.FAIL}, HASWELL)
    written.write(path)
    content = json.loads(path.read_text())
    assert list(content) == ["backend", "engines", "processor", "cases"]
    assert content["processor"] == {
        "name": "Core i7",
        "vendor": "GenuineIntel",
        "family": 6,
        "model": 60,
        "instruction_sets": ["sse4_2", "avx2"],
        "emulator": "",
    }
    assert Baseline.read(path) == written
    del content["processor"]
    path.write_text(json.dumps(content))
    assert Baseline.read(path).processor is None
    content["processor"] = {"name": "Core i7"}
    path.write_text(json.dumps(content))
    with pytest.raises(BaselineError, match="toy.json"):
        Baseline.read(path)


def test_on_another_processor_a_pass_is_as_good_as_any_other() -> None:
    labels = {"test_a": Label.NATIVE, "test_b": Label.ADAPTED}
    same, other = (Baseline("toy", {}, labels, where) for where in (current(), HASWELL))
    assert current().telling != HASWELL.telling
    assert (
        same.lost("test_a", Label.ADAPTED) == Baseline("toy", {}, labels).lost("test_a", Label.ADAPTED) == Label.NATIVE
    )
    assert other.lost("test_a", Label.ADAPTED) is None
    assert other.lost("test_a", Label.FAIL) == Label.NATIVE
    assert other.lost("test_b", Label.NATIVE) is other.lost("test_c", Label.FAIL) is None


def test_how_two_processors_differ_is_said() -> None:
    zen = Processor("AuthenticAMD", 26, 2, "EPYC", frozenset({"sse4_2", "avx2", "avx512f"}))
    assert difference(HASWELL, HASWELL) == difference(None, zen) == difference(zen, None) == ""
    assert difference(HASWELL, zen) == (
        "another processor: was Core i7 (GenuineIntel, family 6, model 60), is EPYC (AuthenticAMD, family 26, model 2), "
        "with avx512f"
    )
    assert "is Core i7 (GenuineIntel, family 6, model 60, emulated by qemu)" in difference(
        HASWELL, replace(HASWELL, emulator="qemu")
    )
    weaker = replace(HASWELL, instruction_sets=frozenset({"sse4_2"}))
    assert difference(HASWELL, weaker) == "another processor: without avx2"


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
