# SPDX-License-Identifier: Apache-2.0
"""Expectations need a reason, hold exactly, and tell when they no longer do."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import onnx
import pytest

from backend_test.unit.conformance.toys import TalkingBackend
from onnx_multi_backend.conformance import (
    BackendRef,
    CaseResult,
    ExpectationError,
    Expectations,
    Label,
    Plan,
    Selection,
    run_conformance,
)
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.host.processor import current
from onnx_multi_backend.host.versions import installed_version

ENTRY = '[[xfail]]\nname = "test_a_cpu"\nreason = "bad"\nkind = "defect"\n'


def load(tmp_path: Path, text: str) -> Expectations:
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return Expectations.load(path)


def result(label: Label, name: str = "test_a_cpu") -> CaseResult:
    return CaseResult("toy", name, "node", label, error="ValueError: x")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[[xfail", "not TOML"),
        ("[[xfails]]\n", "unknown table 'xfails'"),
        ("[xfail]\nname = 'a'\n", "two brackets"),
        ("xfail = ['a']\n", r"\[\[xfail\]\] number 1"),
        (ENTRY.replace('reason = "bad"', ""), "a reason is required"),
        (ENTRY.replace('reason = "bad"', 'reason = " "'), "reason must be a string"),
        (ENTRY.replace('kind = "defect"', ""), "kind is required"),
        (ENTRY.replace("defect", "flaky"), "kind is required, one of 'defect', 'pending', 'random'"),
        (ENTRY.replace("defect", "pending"), "mended_by goes with"),
        (ENTRY + 'mended_by = "part 3"\n', "mended_by goes with"),
        (ENTRY.replace("name =", "nmae ="), "unknown field 'nmae'"),
        (ENTRY + 'glob = "test_*"\n', "one of name, names and glob"),
        (ENTRY.replace('name = "test_a_cpu"', ""), "one of name, names and glob"),
        (ENTRY.replace('name = "test_a_cpu"', "names = []"), "names is empty"),
        (ENTRY.replace('name = "test_a_cpu"', "names = [1]"), "list of strings"),
        (ENTRY.replace("name =", "glob ="), "no wildcard"),
        (ENTRY + "when = 'linux'\n", "when must be a table"),
        (ENTRY + "when = {onnx = 'new'}\n", "not a version specifier"),
        (ENTRY + "when = {instruction_set = 'AVX 512'}\n", "has 'AVX 512'; known are sse4_1"),
        (ENTRY + ENTRY, r"number 2: 'test_a_cpu' is in .*number 1 already"),
    ],
)
def test_a_malformed_file_is_refused_and_the_fault_named(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(ExpectationError, match=fault) as raised:
        load(tmp_path, text)
    assert "toy.toml" in str(raised.value)
    assert isinstance(raised.value, OnnxMultiBackendError)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("label", [Label.FAIL, Label.CRASH, Label.TIMEOUT])
def test_an_expected_failure_is_an_xfail_with_the_reason(tmp_path: Path, label: Label) -> None:
    judged = load(tmp_path, ENTRY + 'link = "https://x"\n').judge(result(label))
    assert (judged.label, judged.reason, judged.unexpected) == (Label.XFAIL, "bad [defect, https://x]", "")
    assert judged.error == "ValueError: x"


@pytest.mark.parametrize("label", [Label.NATIVE, Label.ADAPTED, Label.FALLBACK, Label.PASS])
def test_an_unexpected_pass_fails_and_keeps_its_label(tmp_path: Path, label: Label) -> None:
    judged = load(tmp_path, ENTRY).judge(result(label))
    assert judged.label == label
    assert f"unexpected pass ({label})" in judged.unexpected
    assert "[[xfail]] number 1" in judged.unexpected


def test_other_options_may_mend_an_expected_failure(tmp_path: Path) -> None:
    expected = load(tmp_path, ENTRY)
    for label in (Label.NATIVE, Label.UNSUPPORTED):
        assert expected.judge(result(label), strict=False) == result(label)
    assert expected.judge(result(Label.FAIL), strict=False).label == Label.XFAIL


def test_an_entry_for_an_unsupported_case_is_stale(tmp_path: Path) -> None:
    assert "needs no expectation" in load(tmp_path, ENTRY).judge(result(Label.UNSUPPORTED)).unexpected


def test_random_numbers_may_agree_by_chance(tmp_path: Path) -> None:
    judged = load(tmp_path, ENTRY.replace("defect", "random")).judge(result(Label.NATIVE))
    assert (judged.label, judged.unexpected) == (Label.XFAIL, "")


def test_what_no_entry_names_keeps_its_label_and_a_failure_is_unexpected(tmp_path: Path) -> None:
    for label in Label:
        judged = load(tmp_path, ENTRY).judge(result(label, "test_a_b_cpu"))
        assert judged.label == label
        failed = label in (Label.FAIL, Label.CRASH, Label.TIMEOUT)
        assert judged.unexpected == (f"{label}: ValueError: x" if failed else "")


def test_a_name_goes_before_a_glob_and_a_pending_entry_tells_who_mends_it(tmp_path: Path) -> None:
    family = '[[xfail]]\nglob = "test_*"\nreason = "family"\nkind = "pending"\nmended_by = "part 3"\n'
    expected = load(tmp_path, family + ENTRY)
    assert str(expected.find("test_a_cpu")) == "bad [defect]"
    assert str(expected.find("test_b_cpu")) == "family [pending, mended by part 3]"


def test_a_skip_entry_keeps_the_case_from_running(tmp_path: Path) -> None:
    expected = load(tmp_path, ENTRY.replace("[[xfail]]", "[[skip]]").replace("test_a_cpu", "test_exp_cpu"))
    plan = Plan(BackendRef.of(TalkingBackend), expected)
    (case,) = run_conformance([plan], Selection("test_exp_cpu")).cases
    assert (case.label, case.reason, case.error) == (Label.SKIP, "bad [defect]", "")
    assert case.kind == "node"


def test_entries_that_match_no_case_are_listed(tmp_path: Path) -> None:
    text = (
        '[[xfail]]\nnames = ["test_a_cpu", "test_gone_cpu"]\nreason = "r"\nkind = "defect"\n'
        '[[skip]]\nglob = "test_lost_*"\nreason = "r"\nkind = "random"\n'
        '[[skip]]\nglob = "test_?_cpu"\nreason = "r"\nkind = "random"\n'
    )
    lines = load(tmp_path, text).stale(["test_a_cpu"])
    assert [line.partition(": ")[2] for line in lines] == [
        "[[xfail]] number 1: no case is named 'test_gone_cpu'",
        "[[skip]] number 1: no case matches 'test_lost_*'",
    ]


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ("{onnx = '>=1.0'}", True),
        ("{onnx = '<1.0'}", False),
        (f"{{onnx = '>=1.0', platform = '{sys.platform}'}}", True),
        ("{onnx = '>=1.0', platform = 'amiga'}", False),
        ("{no-such-package = '>=0'}", False),
        (f"{{vendor = '{current().vendor}'}}", True),
        ("{vendor = 'GenuineTransmeta'}", False),
        ("{instruction_set = 'avx512f,!avx512f'}", False),
    ],
)
def test_an_entry_holds_only_where_all_of_its_when_holds(tmp_path: Path, when: str, applies: bool) -> None:
    expected = load(tmp_path, ENTRY + f"when = {when}\n")
    assert (expected.find("test_a_cpu") is not None) == applies
    assert bool(expected.stale([])) == applies


def test_two_entries_may_share_a_case_between_versions(tmp_path: Path) -> None:
    expected = load(tmp_path, ENTRY + "when = {onnx = '<1.0'}\n" + ENTRY.replace("bad", "new"))
    assert str(expected.find("test_a_cpu")) == "new [defect]"


def test_a_version_is_found_by_import_name() -> None:
    assert installed_version("onnx") == onnx.__version__
    assert installed_version("google.protobuf") is None
    assert installed_version("ml_dtypes") == metadata.version("ml-dtypes")
