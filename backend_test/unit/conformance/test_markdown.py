# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, read back as a browser would show it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from backend_test.unit.conformance.sample_report import sample_report
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report import markdown
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.markdown import render_markdown, scoreboard_table
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.page_style.markdown_text import block, code, plain


def html(text: str) -> ET.Element:
    """Return what a reader sees; parsing fails where a tag got through from some text."""
    rendered = MarkdownIt("commonmark", {"xhtmlOut": True}).enable("table").render(text)
    return ET.fromstring(f"<body>{rendered}</body>")


def shown(element: ET.Element) -> str:
    return "".join(element.itertext()).strip()


def tables(text: str) -> list[list[list[str]]]:
    return [[[shown(cell) for cell in row] for row in table.iter("tr")] for table in html(text).iter("table")]


def table_with(text: str, column: str) -> list[list[str]]:
    return next(t for t in tables(text) if column in t[0])


def with_failures(count: int, backends: int = 1, error: str = "Error: wrong") -> Report:
    base = sample_report()
    run = base.backends["OrtCpu"]
    names = [f"Backend{i}" for i in range(backends)]
    cases = tuple(
        CaseResult(name, f"test_case_{i}_cpu", "node", Label.FAIL, error=error, unexpected=f"fail: {error}")
        for name in names
        for i in range(count)
    )
    models = {f"test_case_{i}_cpu": CaseFacts("node", "g", base.models["test_abs_cpu"].operators) for i in range(count)}
    return replace(base, backends={n: replace(run, name=n) for n in names}, cases=cases, models=models)


def test_the_table_of_backends_counts_every_label_that_occurs() -> None:
    header, ort_cpu, ort_openvino, foreign = tables(scoreboard_table(sample_report()))[0]
    assert header == ["backend", "engine", "devices", "cases", "passed", *(x.value for x in Label), "not as expected"]
    assert ort_cpu == [
        *("OrtCpu", "onnxruntime 1.31.1", "CPU", "10", "7 (70.0 %)"),
        *("6", "1", "0", "0", "2", "1", "0", "0", "0", "0", "2"),
    ]
    assert ort_openvino[1] == "onnxruntime 1.24.1, openvino 2026.4.1"
    assert foreign[-5:] == ["1", "2", "1", "1", "4"]


def test_labels_that_do_not_occur_have_no_column() -> None:
    report = replace(sample_report(), cases=tuple(c for c in sample_report().cases if c.label.is_pass))
    header = tables(scoreboard_table(report))[0][0]
    assert header[5:] == ["native", "adapted", "fallback", "pass", "not as expected"]


def test_a_share_is_rounded_down() -> None:
    good = [CaseResult("OrtCpu", "test_abs_cpu", "node", Label.PASS)] * 1999
    bad = CaseResult("OrtCpu", "test_abs_cpu", "node", Label.FAIL)
    row = tables(scoreboard_table(replace(sample_report(), cases=(*good, bad))))[0][1]
    assert row[4] == "1999 (99.9 %)"
    assert tables(scoreboard_table(replace(sample_report(), cases=tuple(good))))[0][1][4] == "1999 (100.0 %)"


def test_an_empty_report_can_be_shown() -> None:
    report = replace(sample_report(), backends={}, cases=(), models={})
    assert tables(render_markdown(report))[0] == [
        ["backend", "engine", "devices", "cases", "passed", "not as expected"]
    ]
    without_cases = replace(sample_report(), cases=())
    assert table_with(render_markdown(without_cases), "passed")[1][3:5] == ["0", "0"]


def test_unexpected_results_are_listed_with_why() -> None:
    rows = table_with(render_markdown(sample_report()), "why")[1:]
    assert [row[:3] for row in rows] == [
        ["OrtCpu", "test_tan_cpu", "native"],
        ["OrtCpu", "test_single_relu_model_cpu", "unsupported"],
        ["onnxruntime.backend", "test_adam_cpu", "fail"],
        ["onnxruntime.backend", "test_if_cpu", "crash"],
        ["onnxruntime.backend", "test_tan_cpu", "fail"],
        ["onnxruntime.backend", "test_squeezenet_cpu", "timeout"],
    ]
    why = [row[3] for row in rows]
    assert why[0].endswith("number 1 (was | wrong)")
    assert why[3] == "signal 11"
    assert why[4] == "AssertionError: a|b `c` <details> & [31mred"
    assert why[5] == "stopped after 60 s"


def test_results_as_expected_are_not_listed() -> None:
    report = sample_report()
    calm = replace(
        report,
        cases=tuple(replace(c, unexpected="") for c in report.cases),
        backends={name: replace(run, problems=()) for name, run in report.backends.items()},
    )
    text = render_markdown(calm)
    assert "none not as expected." in text
    assert "### Not as expected" not in text
    assert "### Problems" not in text


@pytest.mark.parametrize(("count", "folded"), [(20, False), (21, True)])
def test_many_unexpected_results_are_folded(count: int, folded: bool) -> None:
    section = render_markdown(with_failures(count)).split("### Not as expected")[1].split("### ")[0]
    assert ("<details>" in section) == folded
    assert len(table_with(section, "why")) == 1 + count


def test_at_most_fifty_a_backend_are_listed() -> None:
    rows = table_with(render_markdown(with_failures(60, backends=2)), "why")[1:]
    assert len(rows) == 2 * 51
    assert rows[50][:2] == ["Backend0", "and 10 more"]
    assert rows[101][:2] == ["Backend1", "and 10 more"]
    assert not any("more" in row[1] for row in table_with(render_markdown(with_failures(50)), "why"))


def test_problems_of_expectations_are_listed() -> None:
    text = render_markdown(sample_report())
    assert "6 not as expected, and 1 problem of expectations." in text
    (item,) = html(text).iter("li")
    assert shown(item) == f"OrtOpenvino: {sample_report().backends['OrtOpenvino'].problems[0]}"


def test_operators_are_counted_strictly_and_as_onnx_does() -> None:
    text = render_markdown(sample_report())
    header, ort_cpu, ort_openvino, foreign = table_with(text, "passed as ONNX counts")
    assert header == ["backend", "passed", "passed as ONNX counts", "loaded", "total"]
    # OrtCpu: Adam, CumSum and one of Relu's three cases do not pass; the Constant in If's branches does, strictly.
    assert ort_cpu[:4] == ["OrtCpu", "7", "7", "10"]
    assert ort_openvino[:4] == ["OrtOpenvino", "7", "7", "10"]
    assert foreign[:4] == ["onnxruntime.backend", "3", "4", "10"]
    assert int(foreign[4]) > 200


def test_only_operators_that_some_backend_does_not_pass_have_a_row() -> None:
    header, *rows = table_with(render_markdown(sample_report()), "operator")
    assert header == ["operator", "OrtCpu", "OrtOpenvino", "onnxruntime.backend"]
    assert rows == [
        ["Constant", "1/1", "0/1", "0/1"],
        ["Conv", "1/1", "1/1", "0/1"],
        ["CumSum", "0/1", "1/1", "1/1"],
        ["Gemm", "1/1", "1/1", "0/1"],
        ["If", "1/1", "0/1", "0/1"],
        ["Relu", "2/3", "3/3", "2/3"],
        ["Tan", "1/1", "1/1", "0/1"],
        ["ai.onnx.preview.training.Adam", "0/1", "0/1", "0/1"],
    ]


def test_an_operator_that_a_backend_did_not_try_has_an_empty_cell() -> None:
    report = sample_report()
    kept = tuple(c for c in report.cases if (c.backend, c.name) != ("OrtCpu", "test_cumsum_1d_cpu"))
    failing = tuple(replace(c, label=Label.FAIL) if c.name == "test_cumsum_1d_cpu" else c for c in kept)
    rows = table_with(render_markdown(replace(report, cases=failing)), "operator")
    assert ["CumSum", "", "0/1", "0/1"] in rows


def test_each_backend_has_its_environment() -> None:
    header, *rows = table_with(render_markdown(sample_report()), "cpu")
    assert header == ["backend", "started", "onnx", "engine", "python", "platform", "cpu", "cores"]
    assert rows[1] == [
        *("OrtOpenvino", "2026-11-20T08:00:00+00:00", "1.23.2", "onnxruntime 1.24.1, openvino 2026.4.1", "3.12.4"),
        *("Windows-11-10.0.26100", "Another Processor | 8 cores", "8"),
    ]


def test_each_command_is_shown_once() -> None:
    assert shown(next(html(render_markdown(sample_report())).iter("pre"))).splitlines() == [
        "onnx-multi-backend conformance --preset OrtCpu --preset onnxruntime.backend",
        "onnx-multi-backend conformance --preset OrtOpenvino",
    ]


def test_changes_come_after_the_table_of_backends() -> None:
    text = render_markdown(sample_report(), "### Changed\n\nnothing\n")
    assert text.index("| `onnxruntime.backend` |") < text.index("### Changed\n\nnothing\n\n### Not as expected")


def test_an_interrupted_run_says_so_on_top() -> None:
    assert shown(html(render_markdown(sample_report(interrupted=True)))[0]).startswith("The run was interrupted")
    assert "interrupted" not in render_markdown(sample_report())


@pytest.mark.parametrize("error", ["é|`<&" * 900, "\U0001f600" * 900, "short"], ids=["markup", "emoji", "short"])
def test_the_largest_report_is_below_the_size_that_github_takes(error: str) -> None:
    text = render_markdown(with_failures(2033, backends=12, error=error))
    assert len(text.encode()) < 1024 * 1024
    assert "12 backends" in text
    assert "onnx-multi-backend conformance" in text
    assert "too long" not in text


def test_what_does_not_fit_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    text = render_markdown(sample_report(), f"### Changed\n\n{'x' * 2_000_000}")
    assert len(text.encode()) < 1024 * 1024
    assert "### Changed\n\nLeft out here, for it is too long.\n\n### Not as expected" in text
    monkeypatch.setattr(markdown, "LIMIT", len(scoreboard_table(sample_report())) + 500)
    short = render_markdown(sample_report())
    assert len(short.encode()) < markdown.LIMIT + 500
    assert "### Not as expected\n\nLeft out here" in short


@pytest.mark.parametrize(
    "text",
    [
        "a|b",
        "a\\|b\\\\|c",
        "`code` and ``more`` `",
        "<b>bold</b> <!-- gone --> &amp; &#124;",
        "[link](http://example.com) ![image](x)",
        "**bold** __init__ _x_ a__b snake_case ~~gone~~ *",
        "$x^2$ $`y`$",
        "# no heading",
        "--- | ---",
    ],
)
def test_text_in_a_cell_stands_as_it_is(text: str) -> None:
    assert tables(f"| a | b |\n| --- | --- |\n| {plain(text)} | end |")[0][1] == [text, "end"]
    assert tables(f"| a | b |\n| --- | --- |\n| {code(text)} | end |")[0][1] == [text, "end"]


def test_text_in_a_cell_is_one_short_line() -> None:
    assert plain("a\n b\r\n\tc\x00\x1b\u2028d \ud800e") == "a b c d e"
    assert plain("x" * 300) == "x" * 199 + "…"
    assert plain("x" * 200) == "x" * 200


def test_names_are_code_where_they_can_be() -> None:
    assert code("test_abs_cpu") == "`test_abs_cpu`"
    assert code("onnxruntime.backend") == "`onnxruntime.backend`"
    assert code("a`b") == "a&#96;b"
    assert code("") == ""


def test_a_block_holds_whatever_it_is_given() -> None:
    lines = ["echo '```'", "````", "| <b> |"]
    assert shown(html(block(lines))).splitlines() == lines
