# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a report in a browser: found, filtered, opened, by mouse and by keyboard, and never on the network."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend_test.unit.conformance.browser import CONTRASTS
from backend_test.unit.conformance.pages import HOSTILE, Opener, cell, focused, operator, shown, visible_texts
from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.coverage import operator_coverage
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.html import render_html
from onnx_multi_backend.conformance.results import CaseResult


def test_nothing_outside_the_page_is_asked_for(report: Report) -> None:
    page = render_html(report)
    assert not re.findall(r"<(?:link|script|img|iframe)[^>]*(?:src|href)=(?!\"data:)", page)
    assert not re.findall(r"@import|url\(", page)
    assert "default-src 'none'" in page


def test_texts_of_the_report_never_become_markup(report: Report, visit: Opener) -> None:
    assert "<img" not in render_html(report)
    hostile = replace(report.backends["OrtCpu"], name="<i>evil", problems=("<img src=x onerror=alert(3)>",))
    renamed = tuple(replace(c, backend=hostile.name) for c in report.of("OrtCpu"))
    page = render_html(replace(report, backends={hostile.name: hostile}, cases=renamed))
    assert "<img" not in page
    assert "<i>" not in page
    opened = visit(address="#op=ai.onnx:Tan&backend=onnxruntime.backend&case=test_tan")
    assert opened.locator("pre").text_content() == HOSTILE


def test_the_header_says_what_was_run_where_and_that_it_was_interrupted(report: Report, visit: Opener) -> None:
    header = visit().locator("header.top").inner_text()
    environment = report.environment
    assert "onnx 1.23.2" in header
    assert "openvino 2026.4.1" in header
    assert environment.cpu in header
    assert " ".join(environment.command) in header
    assert "Interrupted" in header


def test_a_whole_run_has_no_notice(report: Report) -> None:
    assert "Interrupted" not in render_html(replace(report, interrupted=False))


def test_a_problem_of_the_expectations_is_not_as_expected(report: Report) -> None:
    def page(*problems: str) -> str:
        run = replace(report.backends["OrtCpu"], problems=problems)
        cases = tuple(replace(c, unexpected="") for c in report.of("OrtCpu"))
        return render_html(replace(report, backends={"OrtCpu": run}, cases=cases))

    assert "all as expected" in page()
    assert "all as expected" not in page("no case is named 'test_gone_cpu'")


def test_the_summary_counts_labels_and_tells_problems(visit: Opener) -> None:
    page = visit()
    ort, openvino, *_ = page.locator(".summary > li").all()
    assert "7 / 10 passed 70.0 %" in " ".join(ort.locator(".score").inner_text().split())
    assert ort.get_by_role("img").get_attribute("aria-label") == (
        "Of 10 cases 6 native, 1 adapted, 2 unsupported, 1 xfail"
    )
    assert "no case is named" in openvino.locator(".notice").inner_text()
    openvino.locator(".how summary").click()
    assert "Windows-11" in openvino.inner_text()
    assert "threads=1" in openvino.inner_text()


def test_a_share_is_rounded_down(report: Report) -> None:
    native = replace(report.cases[0], label=Label.NATIVE)
    cases = [replace(native, name=f"test_{i}_cpu") for i in range(2000)]
    cases[0] = replace(cases[0], label=Label.FAIL)
    models = {case.name: report.models[native.name] for case in cases}
    ort = {"OrtCpu": report.backends["OrtCpu"]}
    assert "99.9 %" in render_html(replace(report, cases=tuple(cases), models=models, backends=ort))


def test_cells_say_how_many_cases_passed(report: Report, visit: Opener) -> None:
    page = visit()
    rows = page.locator("tr:has(td)").evaluate_all("rows => rows.map(row => [...row.cells].map(c => c.textContent))")
    texts = {name: cells for name, *cells in rows}
    for number, backend in enumerate(report.backends):
        for found, coverage in operator_coverage(report, backend).items():
            assert f"{coverage.passes}/{coverage.tried.cases}" in texts[found.op_type][number]


def test_no_state_is_told_by_colour_alone(visit: Opener) -> None:
    page = visit()
    signs = page.locator("td button").evaluate_all(
        "buttons => buttons.map(b => [b.dataset.state, b.firstChild.textContent, b.ariaLabel])"
    )
    states = {state: sign for state, sign, _ in signs}
    assert len(set(states.values())) == len(states) == 7
    assert all(label for *_, label in signs)


#: Opens each operator for each backend, and returns what the panel says by operator and backend.
OPEN_ALL = """async buttons => {
  const told = [];
  for (const button of buttons) {
    button.click();
    const panel = document.getElementById("details");
    const all = (selector, of = panel) => [...of.querySelectorAll(selector)].map(element => element.textContent);
    if (!panel.querySelector(".count").textContent.includes("/")) continue; // not run
    while (!panel.querySelector(".by-label")) await new Promise(requestAnimationFrame);
    const byLabel = [...panel.querySelectorAll(".by-label")].map(part => all("p, dd", part));
    told.push([all("h2")[0], all("option:checked")[0], all(".yes-no"), byLabel]);
  }
  return told;
}"""


def test_an_operator_is_counted_as_the_coverage_counts_it(report: Report, visit: Opener) -> None:
    told = visit().locator("td button").evaluate_all(OPEN_ALL)
    expected = [
        [
            found.op_type,
            backend,
            [
                f"every case passed: {'yes' if coverage.passed else 'no'}",
                f"as ONNX counts: {'yes' if coverage.passed_as_onnx_counts else 'no'}",
            ],
            [as_told(label, values) for label, values in coverage.to_dict()["by_label"].items()],
        ]
        for backend in report.backends
        for found, coverage in operator_coverage(report, backend).items()
    ]
    assert sorted(told) == sorted(expected)


def as_told(label: str, tried: dict[str, Any]) -> list[str]:
    counted = [f"{name} ({n} value{'s' if n > 1 else ''})" for name, n in tried["attributes"].items()]
    lists = [map(str, tried["since_versions"]), counted, tried["types"]]
    cases = f"{label} {tried['cases']} case{'s' if tried['cases'] > 1 else ''}"
    return [cases, *(", ".join(each) or "none" for each in lists)]


def test_search_finds_operators_by_name(visit: Opener) -> None:
    page = visit()
    page.get_by_label("Search").fill("conv")
    assert shown(page) == ["Conv"]
    assert page.get_by_role("status").text_content() == "1 of 10 operators, 1 of 10 cases"


def test_search_finds_cases_and_narrows_what_is_opened_to_them(visit: Opener) -> None:
    page = visit()
    page.get_by_label("Search").fill("single RELU")
    assert shown(page) == ["Relu"]
    operator(page, "Relu").click()
    assert page.locator(".case .name").all_text_contents() == ["test_single_relu_model_cpu"]
    page.get_by_role("button", name="Show all 3").click()
    assert page.locator(".case").count() == 3


def test_a_search_for_nothing_says_so_and_reset_brings_all_back(visit: Opener) -> None:
    page = visit()
    page.get_by_label("Search").fill("no such thing")
    assert page.get_by_text("No operator fits these filters.").is_visible()
    page.get_by_role("button", name="Reset").click()
    assert len(shown(page)) == 10
    assert page.get_by_label("Search").input_value() == ""


def test_domains_are_filtered(visit: Opener) -> None:
    page = visit()
    page.get_by_label("Domain").select_option("ai.onnx.preview.training")
    assert shown(page) == ["Adam"]


def test_labels_are_filtered(report: Report, visit: Opener) -> None:
    page = visit()
    for label in Label:
        button = page.locator(f"#label-filters [data-filter={label}]")
        button.click()
        names = {c.name for c in report.cases if c.label is label}
        assert set(shown(page)) == {use.op_type for name in names for use in report.models[name].operators}
        button.click()


def test_several_labels_add_up(visit: Opener) -> None:
    page = visit()
    for label in ("crash", "timeout"):
        page.get_by_role("group", name="Label").get_by_role("button", name=label).click()
    assert set(shown(page)) == {"Constant", "If", "Conv", "Relu"}


def test_a_backend_is_hidden_and_what_only_it_has_too(visit: Opener) -> None:
    page = visit()
    page.get_by_role("group", name="Label").get_by_role("button", name="crash").click()
    page.get_by_role("group", name="Backend").get_by_role("button", name="onnxruntime.backend").click()
    assert visible_texts(page, "thead th") == ["Operator", "OrtCpu", "OrtOpenvino", "OrtCuda"]
    assert shown(page) == []


def test_what_is_not_as_expected_is_filtered(report: Report, visit: Opener) -> None:
    page = visit()
    page.get_by_label("Not as expected only").check()
    names = {c.name for c in report.unexpected}
    assert set(shown(page)) == {use.op_type for name in names for use in report.models[name].operators}


def test_the_summary_leads_to_what_is_not_as_expected(visit: Opener) -> None:
    page = visit()
    page.get_by_role("button", name="2 not as expected").first.click()
    assert shown(page) == ["Relu", "Tan"]
    assert visible_texts(page, "thead th") == ["Operator", "OrtCpu"]


def test_a_case_tells_all_that_is_known(report: Report, visit: Opener) -> None:
    page = visit()
    operator(page, "Relu").click()
    page.locator(".case", has_text="test_relu").first.locator("summary").first.click()
    texts = page.locator(".case[open] .result").all_inner_texts()
    results = [next(c for c in report.of(b) if c.name.startswith("test_relu_c")) for b in report.backends]
    for told, result in zip(texts, results, strict=True):
        assert result.backend in told
        assert result.label in told
        assert result.reason in told
        assert result.unexpected in told
        assert all(word in told for change in result.adaptations for word in change)
        assert all(node.provider in told for node in result.placement)
    assert "3 nodes: Conv \u00d73" in texts[-1]
    assert "1.25 ms" in texts[-1]
    assert "test_relu_cuda" in texts[-1]


def test_an_error_is_shown_whole(visit: Opener) -> None:
    page = visit()
    operator(page, "CumSum").click()
    page.locator(".case summary").click()
    assert page.locator(".case pre").text_content() == "AssertionError: \nNot equal"


def test_a_cell_opens_the_operator_for_its_backend(visit: Opener) -> None:
    page = visit()
    cell(page, "CumSum", 1).click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_label("Backend").locator("option:checked").text_content() == "OrtOpenvino"
    assert dialog.locator(".case .labels").all_inner_texts() == ["fallback"]
    dialog.get_by_label("Backend").select_option("all shown")
    dialog.locator(".case .labels", has_text="xfail").wait_for()


def test_the_address_brings_back_what_is_shown(visit: Opener) -> None:
    page = visit()
    page.get_by_label("Search").fill("relu")
    page.get_by_role("group", name="Label").get_by_role("button", name="unsupported").click()
    cell(page, "Relu", 0).click()
    page.locator(".case summary").click()
    page.locator(".case[open] .result").wait_for()
    again = visit(address=page.evaluate("location.hash"))
    assert again.get_by_label("Search").input_value() == "relu"
    assert shown(again) == ["Relu"]
    assert again.locator(".case[open] .result").count() == 1
    assert again.get_by_role("heading", name="Relu").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_keyboard_alone_opens_and_closes(visit: Opener, width: int) -> None:
    page = visit(width=width)
    keys = page.keyboard
    keys.press("Tab")
    assert focused(page) == "Skip to the operators"
    keys.press("Enter")
    keys.press("/")
    assert focused(page) == "search"
    keys.type("tan")
    for _ in range(30):
        keys.press("Tab")
        if focused(page) == "Tan":
            break
    assert focused(page) == "Tan"
    keys.press("ArrowDown")
    assert focused(page) == "Constant"
    keys.press("ArrowUp")
    assert focused(page) == "Tan"
    keys.press("Enter")
    assert operator(page, "Tan").get_attribute("aria-expanded") == "true" or width == 390
    assert focused(page) == "details-title"
    for _ in range(10):
        keys.press("Tab")
        if "test_tan" in focused(page):
            break
    keys.press("Enter")
    page.locator(".case[open] .result").first.wait_for()
    keys.press("Escape")
    page.locator("[aria-expanded=true]").wait_for(state="detached")  # a dialog tells that it was closed a little later
    assert page.get_by_role("dialog").count() == 0
    assert focused(page) == "Tan"
    keys.press("ArrowRight")
    keys.press("Space")
    assert focused(page) == "details-title"
    keys.press("Escape")
    page.locator("[aria-expanded=true]").wait_for(state="detached")
    assert page.evaluate("document.activeElement.closest('td') !== null")


@pytest.mark.parametrize(("width", "opened"), [*itertools.product([390, 1280], [False, True])])
def test_the_page_is_never_wider_than_the_screen(visit: Opener, width: int, opened: bool) -> None:
    page = visit(width=width, address="#op=ai.onnx:Tan&case=test_tan" if opened else "")
    for details in page.locator(".how, .backend").all():
        details.locator("summary").first.click() if not opened else details.evaluate("d => d.open = true")
    for element in ("document.documentElement", "document.getElementById('details')"):
        wide, room = page.evaluate(f"[{element}.scrollWidth, {element}.clientWidth]")
        assert wide <= room


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_in_light_and_dark(visit: Opener, scheme: str) -> None:
    page = visit(scheme=scheme, address="#op=ai.onnx:Relu&case=test_relu")
    page.locator(".meanings summary").click()
    everything = page.locator("body *:not(script, style, option):not(:has(> *:not(b, wbr)))")
    contrasts = everything.evaluate_all(CONTRASTS)
    assert len(contrasts) > 100
    assert not [(round(ratio, 2), text) for ratio, text in contrasts if text and ratio < 4.5]


def test_light_and_dark_follow_the_system_until_chosen(visit: Opener) -> None:
    page = visit(scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light colours").click()
    light = page.evaluate(background)
    assert light == "rgb(255, 255, 255)" != dark
    page.reload()
    assert page.evaluate(background) == light
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(background) == dark


def test_a_page_without_results_says_so(report: Report, visit: Opener, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_text(render_html(replace(report, cases=(), models={})), encoding="utf-8")
    page = visit(path)
    assert page.get_by_text("No operator fits these filters.").is_visible()
    assert "no cases" in page.locator(".summary").inner_text()


def test_twenty_thousand_results_are_searched_and_opened(report: Report, visit: Opener, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_text(render_html(large_report(report)), encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    page = visit(path)
    assert page.get_by_role("status").text_content() == "200 of 200 operators, 2000 of 2000 cases"
    page.get_by_label("Search").fill("test_7_")
    assert page.get_by_role("status").text_content() == "2 of 200 operators, 1 of 2000 cases"
    page.get_by_role("button", name="Reset").click()
    operator(page, "Operator7").click()
    assert page.locator(".case").count() == 20


def large_report(report: Report) -> Report:
    """Ten backends with 2000 cases each, every error a text of its own."""
    backends = {f"Backend{b}": replace(report.backends["OrtCpu"], name=f"Backend{b}") for b in range(10)}
    models = {}
    for i in range(2000):
        uses = [OperatorUse("ai.onnx", f"Operator{n % 200}", 13, True, {}, ("tensor(float)",)) for n in (i, i + 1)]
        models[f"test_{i}_cpu"] = CaseFacts("node", f"test_{i}", tuple(uses))
    labels = list(Label)
    cases = tuple(
        CaseResult(backend, name, "node", label, error="" if label.is_pass else f"Error: {backend} {name}" * 3)
        for b, backend in enumerate(backends)
        for i, name in enumerate(models)
        for label in [labels[(i * i + b) % 97 % len(labels)]]
    )
    return Report(report.environment, backends, cases, models)
