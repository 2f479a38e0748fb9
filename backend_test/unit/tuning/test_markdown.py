# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from backend_test.unit.tuning import made
from onnx_multi_backend.tuning.comparing import compare
from onnx_multi_backend.tuning.markdown import render


def test_result_machine_and_inputs() -> None:
    text = render(made.bench())
    assert text.startswith("## ")
    assert "Openvino" in text.splitlines()[0]
    for words in ("resnet50.onnx", "AMD EPYC 9V74", "CPUs: 4", "onnxruntime 1.31.0", "random", "optimizations off"):
        assert words in text


def test_printed_it_has_no_entities() -> None:
    report = replace(made.bench(), inputs={"x": "float32 [1, 3]"})
    assert "x: float32 [1, 3] (" in str(report)
    assert "[" not in next(line for line in render(report).splitlines() if line.startswith("- Inputs"))


def test_the_table_is_github_s_and_ordered() -> None:
    report = made.bench()
    rows = [line for line in render(report).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 5
    assert [row.split("|")[1].strip() for row in rows[2:]] == [m.name for m in report.ranked]
    assert len({row.count("|") for row in rows}) == 1
    assert "failed: Openvino cannot run the model" in rows[-1]


def test_names_are_text() -> None:
    name = "a|b <b>`x` *y* \udc80"
    text = render(made.report([made.measured(name, options={"v": "`"}), made.failed("B", name)], model=name))
    assert text.encode("utf-8")
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "<b>" not in html
    assert "<em>" not in html
    assert "<td>a|b &lt;b&gt;`x` *y*" in html


def test_a_long_search_is_cut() -> None:
    text = render(made.tune(60))
    assert len([line for line in text.splitlines() if line.startswith("|")]) == 2 + 20
    assert "And 40 more; 60 in all: " in text
    assert "allows it" in text


@pytest.mark.parametrize("measurements", [[], [made.failed("A", "")], [made.measured("A")]])
def test_few(measurements: list[made.Measurement]) -> None:
    assert render(made.report(measurements)).startswith("## ")


def test_a_comparison_is_shown() -> None:
    new = made.bench()
    text = render(new, compare(made.changed(new, "OrtCpu", latency=made.rounds(0.008)), new))
    assert "| OrtCpu" in text
    assert "**slower**" in text


@pytest.mark.parametrize(
    ("objective", "words"),
    [("latency", "vs fastest"), ("throughput", "vs fastest"), ("memory", "vs smallest")],
)
def test_a_ratio_says_what_it_is_a_multiple_of(objective: str, words: str) -> None:
    report = made.report(
        [made.measured("A", 0.01, throughput=(100.0,) * 8), made.measured("B", 0.02, throughput=(50.0,) * 8)]
    )
    report = replace(report, objective=objective)
    assert f"| {words} |" in " ".join(render(report).split())
    assert words in report.to_html()
    assert "Times the best" not in report.to_html()
    assert "1 (best)" in render(report)
    searched = replace(report, kind="tune")
    assert "| vs chosen |" in " ".join(render(searched).split())
    assert "1 (chosen)" in render(searched)
