# SPDX-License-Identifier: Apache-2.0
"""A draft of expectations makes the next run as expected, and groups what has one cause."""

from __future__ import annotations

import tomllib
from pathlib import Path

from onnx_multi_backend.conformance import CaseResult, Expectations, Label, draft_expectations


def result(name: str, label: Label, error: str = "", reason: str = "") -> CaseResult:
    return CaseResult("toy", name, "node", label, reason, error=error)


RESULTS = [
    result("test_a_cpu", Label.PASS),
    result("test_b_cpu", Label.FAIL, "ValueError: no kernel for 'Add' (7)\nmore \"text\""),
    result("test_c_cpu", Label.FAIL, "ValueError: no kernel for 'Mul' (14)"),
    result("test_d_cpu", Label.FAIL, 'TypeError: "\\x7f\x7f odd"'),
    result("test_e_cpu", Label.CRASH, "Fatal", "the process died: SIGSEGV"),
    result("test_f_cpu", Label.TIMEOUT, "", "stopped after 3 s"),
    result("test_g_cpu", Label.UNSUPPORTED, "", "no"),
    result("test_h_cpu", Label.FAIL),
    result("test_i_cpu", Label.FAIL, "KeyError: no \U0001f600, and \udce9 is half of nothing"),
]


def test_failures_are_grouped_by_their_message() -> None:
    document = tomllib.loads(draft_expectations(RESULTS))
    assert [t["names"] for t in document["xfail"]] == [
        ["test_b_cpu", "test_c_cpu"],
        ["test_d_cpu"],
        ["test_h_cpu"],
        ["test_i_cpu"],
    ]
    assert document["xfail"][0]["reason"] == "ValueError: no kernel for 'Add' (7)"
    assert document["xfail"][3]["reason"] == "KeyError: no \U0001f600, and \\udce9 is half of nothing"
    assert [t["names"] for t in document["skip"]] == [["test_e_cpu"], ["test_f_cpu"]]


def test_with_the_draft_all_is_as_expected(tmp_path: Path) -> None:
    file = tmp_path / "toy.toml"
    file.write_text(draft_expectations(RESULTS), encoding="utf-8")
    expected = Expectations.load(file)
    for case in RESULTS:
        judged = expected.skipped("toy", case.name, case.kind) or expected.judge(case)
        assert not judged.unexpected
        assert not judged.label.is_failure


def test_nothing_failed() -> None:
    assert tomllib.loads(draft_expectations(RESULTS[:1])) == {}


def test_the_head_counts_in_words_that_fit() -> None:
    assert "a run on toy: 7 cases in 6 groups of the same message." in draft_expectations(RESULTS)
    assert "a run on toy: 1 case in 1 group of the same message." in draft_expectations(RESULTS[1:2])
    assert "a run on a backend: 0 cases in 0 groups" in draft_expectations(RESULTS[:1])
