# SPDX-License-Identifier: Apache-2.0
"""The HTML page in a browser: what is found first, what differs, what changed, what the head says, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend_test.unit.conformance.pages import Opener, cell, focused, operator, shown
from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.changes import compare_reports
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.html import render_html
from onnx_multi_backend.conformance.results import CaseResult


def written(report: Report, folder: Path, **settings: Any) -> Path:
    path = folder / "index.html"
    path.write_text(render_html(report, **settings), encoding="utf-8")
    return path


def operators_report(report: Report, *operators: tuple[str, str], backends: int = 1) -> Report:
    """Two cases, one of which passes, for each operator, on backends with long names."""
    names = [f"OrtCpu (Intel Core i7 9xx (Nehalem Class Core i7), SSE4.{i})" for i in range(backends)]
    runs = {name: replace(report.backends["OrtCpu"], name=name) for name in names}
    models = {}
    for domain, name in operators:
        for form in ("", "_bcast"):
            use = OperatorUse(domain, name, 13, True, {}, ("tensor(float)",))
            models[f"test_{name.lower()}{'_ml' * domain.endswith('ml')}{form}_cpu"] = CaseFacts("node", name, (use,))
    cases = tuple(
        CaseResult(run, name, "node", Label.FAIL, error=f"Error: bad {name}", unexpected="fail: Error")
        if "_bcast" in name
        else CaseResult(run, name, "node", Label.NATIVE)
        for run in runs
        for name in models
    )
    return Report(report.environment, runs, cases, models)


def test_an_exact_name_is_found_first(report: Report, visit: Opener, tmp_path: Path) -> None:
    names = [("ai.onnx", name) for name in ("BitwiseOr", "Floor", "Or", "OrLike", "Xor")]
    page = visit(written(operators_report(report, *names, ("ai.onnx.ml", "Floor")), tmp_path))
    assert shown(page) == ["BitwiseOr", "Floor", "Or", "OrLike", "Xor", "Floor"]
    page.get_by_label("Search").fill("or")
    assert shown(page) == ["Or", "OrLike", "BitwiseOr", "Floor", "Xor", "Floor"]
    page.get_by_label("Search").fill("ai.onnx.ml.floor")
    assert shown(page) == ["Floor"]
    page.get_by_label("Search").fill("")
    assert shown(page) == ["BitwiseOr", "Floor", "Or", "OrLike", "Xor", "Floor"]


def test_an_exact_name_of_another_domain_is_found_first(report: Report, visit: Opener, tmp_path: Path) -> None:
    names = [("ai.onnx", "AdamLike"), ("ai.onnx.preview.training", "Adam")]
    page = visit(written(operators_report(report, *names), tmp_path))
    page.get_by_label("Search").fill("adam")
    assert shown(page) == ["Adam", "AdamLike"]
    page.get_by_label("Search").press("Tab")
    operator(page, "Adam").focus()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "AdamLike"


def test_a_case_that_is_searched_by_its_whole_name_is_the_first(report: Report, visit: Opener, tmp_path: Path) -> None:
    page = visit(written(operators_report(report, ("ai.onnx", "Add")), tmp_path))
    page.get_by_label("Search").fill("add")
    operator(page, "Add").click()
    assert page.locator(".case .name").all_text_contents() == ["test_add_bcast_cpu", "test_add_cpu"]
    page.get_by_label("Search").fill("test_add_cpu")
    assert page.locator(".case .name").all_text_contents() == ["test_add_cpu"]
    page.get_by_role("button", name="Show all 2").click()
    assert page.locator(".case .name").all_text_contents() == ["test_add_cpu", "test_add_bcast_cpu"]


def test_where_backends_differ_is_filtered(report: Report, visit: Opener) -> None:
    page = visit()
    page.get_by_label("Where these differ").check()
    differing = {}
    for name, facts in report.models.items():
        passes = {c.label.is_pass for c in report.cases if c.name.removesuffix("_cuda") == name.removesuffix("_cuda")}
        if len(passes) > 1:
            differing[name] = facts
    assert set(shown(page)) == {use.op_type for facts in differing.values() for use in facts.operators}
    assert "Abs" not in shown(page)  # passes everywhere
    assert "differ=1" in page.evaluate("location.hash")
    for other in ("OrtOpenvino", "onnxruntime.backend", "OrtCuda"):
        page.get_by_role("group", name="Backend").get_by_role("button", name=other).click()
    assert shown(page) == []  # one backend differs from none
    page.get_by_role("button", name="Reset").click()
    assert len(shown(page)) == 10


def test_the_cases_of_a_cell_are_those_where_the_backends_differ(visit: Opener) -> None:
    page = visit(address="#differ=1")
    cell(page, "Relu", 0).click()
    assert page.locator(".case .name").all_text_contents() == ["test_single_relu_model_cpu", "test_squeezenet_cpu"]


def test_one_backend_has_no_filter_for_differences(report: Report, visit: Opener, tmp_path: Path) -> None:
    page = visit(written(operators_report(report, ("ai.onnx", "Add")), tmp_path), address="#differ=1")
    assert not page.get_by_label("Where these differ").is_visible()
    assert shown(page) == ["Add"]


def test_the_head_counts_operators_and_tells_the_most_frequent_reasons(visit: Opener) -> None:
    page = visit()
    ort, _, foreign, _ = page.locator(".summary > li").all()
    assert "7 / 10 operators" in ort.locator(".score").inner_text()
    assert ort.locator(".why summary").inner_text().split("\n")[0].startswith("3 did not pass")
    assert ort.locator(".why summary .first").text_content() == "1 unsupported: it lacks Adam."
    foreign.locator(".why summary").click()
    reasons = foreign.locator(".why li").all_inner_texts()
    assert len(reasons) == 5
    assert any("Adam(-1) is not a registered function/op" in reason for reason in reasons)


@pytest.mark.parametrize("backends", [3, 8])
def test_rows_of_the_table_are_in_sight_at_once(report: Report, visit: Opener, tmp_path: Path, backends: int) -> None:
    names = [("ai.onnx", f"Operator{i}") for i in range(50)]
    path = written(operators_report(report, *names, backends=backends), tmp_path)
    page = visit(path, width=1440)
    visible = """rows => rows.filter(row => {
      const [box, grid] = [row, row.closest("#grid")].map(element => element.getBoundingClientRect());
      return box.height && box.top >= grid.top && box.bottom <= Math.min(grid.bottom, innerHeight);
    }).length"""
    assert page.locator("tbody tr:has(td)").evaluate_all(visible) > 1
    operator(page, "Operator7").click()
    assert page.locator("tbody tr:has(td)").evaluate_all(visible) > 1


@pytest.mark.parametrize("width", [1280, 390])
def test_back_closes_the_panel_and_keeps_the_filters(visit: Opener, width: int) -> None:
    page = visit(width=width)
    page.get_by_label("Search").fill("relu")
    operator(page, "Relu").click()
    assert page.get_by_role("dialog").count() == 1
    page.go_back()
    page.get_by_role("dialog").wait_for(state="detached" if width > 390 else "hidden")
    assert page.get_by_label("Search").input_value() == "relu"
    assert shown(page) == ["Relu"]
    page.locator("[aria-expanded=true]").wait_for(state="detached")
    assert focused(page) == "Relu"
    assert "op=" not in page.evaluate("location.hash")
    page.go_forward()
    assert page.get_by_role("heading", name="Relu").is_visible()


def test_filters_that_changed_beside_the_panel_survive_back(visit: Opener) -> None:
    page = visit()
    operator(page, "Tan").click()
    operator(page, "Relu").click()  # another operator is not a step of its own
    page.get_by_label("Search").fill("relu")
    page.go_back()
    page.locator("[aria-expanded=true]").wait_for(state="detached")
    assert shown(page) == ["Relu"]
    assert page.evaluate("location.hash") == "#q=relu"


def test_what_changed_since_an_earlier_report_is_shown(report: Report, visit: Opener, tmp_path: Path) -> None:
    old = {("OrtCpu", "test_tan_cpu"): Label.XFAIL, ("onnxruntime.backend", "test_adam_cpu"): Label.PASS}
    before = replace(report, cases=tuple(replace(c, label=old.get((c.backend, c.name), c.label)) for c in report.cases))
    path = written(report, tmp_path, changes=compare_reports(before, report), against="old/<b>report.json")
    page = visit(path)
    section = page.locator("#changes")
    assert "against old/<b>report.json: 1 worse, 1 better, 0 other changes" in section.inner_text()
    section.locator("summary").click()
    section.locator("li").first.wait_for()
    worse, better = (" ".join(text.split()) for text in section.locator("li").all_inner_texts())
    assert worse == (
        "newly failing test_adam_cpu onnxruntime.backend pass \u2192 fail Fail: Adam(-1) is not a registered function/op"
    )
    assert better == "better test_tan_cpu OrtCpu xfail \u2192 native"
    section.get_by_role("button", name="test_adam_cpu").click()
    assert page.locator(".case[open] h4 .was").text_content() == "was pass"
    page.go_back()
    page.locator("[aria-expanded=true]").wait_for(state="detached")
    assert focused(page) == "test_adam_cpu"


def test_a_report_that_is_compared_with_none_has_no_changes(report: Report, visit: Opener) -> None:
    assert visit().locator("#changes").count() == 0
