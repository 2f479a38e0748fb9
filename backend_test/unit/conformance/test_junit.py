# SPDX-License-Identifier: Apache-2.0
"""A report as JUnit XML, parsed back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from backend_test.unit.conformance.sample_report import NASTY_ERROR, sample_report
from onnx_multi_backend.conformance.cases import KINDS, STOCK_CLASSES
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.junit import render_junit
from onnx_multi_backend.conformance.results import CaseResult

ELEMENTS = {"failure", "error", "skipped"}


def parse(report: Report) -> ET.Element:
    return ET.fromstring(render_junit(report).encode())


def suite(name: str, report: Report | None = None) -> ET.Element:
    found = [s for s in parse(report or sample_report()) if s.get("name") == name]
    assert len(found) == 1
    return found[0]


def outcome(case: ET.Element) -> ET.Element | None:
    found = [child for child in case if child.tag in ELEMENTS]
    assert len(found) <= 1
    return found[0] if found else None


def outcome_of(backend: str, name: str) -> ET.Element | None:
    return outcome(next(c for c in suite(backend).iter("testcase") if c.get("name") == name))


def test_each_backend_is_a_suite_with_its_counts() -> None:
    counts = {
        s.get("name"): tuple(int(s.get(key, "")) for key in ("tests", "failures", "errors", "skipped"))
        for s in parse(sample_report())
    }
    assert counts == {"OrtCpu": (10, 2, 0, 2), "OrtOpenvino": (11, 1, 0, 2), "onnxruntime.backend": (10, 2, 2, 1)}


def test_counts_agree_with_the_cases_and_the_total_with_the_suites() -> None:
    root = parse(sample_report())
    keys = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for s in root:
        tags = Counter(o.tag for c in s.iter("testcase") if (o := outcome(c)) is not None)
        assert {key: int(s.get(key, "")) for key in keys} == {key: tags[tag] for key, tag in keys.items()}
        assert int(s.get("tests", "")) == len(s.findall("testcase"))
    for key in ("tests", *keys):
        assert int(root.get(key, "")) == sum(int(s.get(key, "")) for s in root)


def test_cases_have_the_stock_names_and_seconds() -> None:
    report = sample_report()
    cases = suite("onnxruntime.backend").findall("testcase")
    assert [(c.get("classname"), c.get("name"), float(c.get("time", ""))) for c in cases] == [
        (f"onnxruntime.backend.{STOCK_CLASSES[r.kind]}", r.name, r.duration_ms / 1000)
        for r in report.of("onnxruntime.backend")
    ]
    assert cases[0].get("classname") == "onnxruntime.backend.OnnxBackendNodeModelTest"
    assert float(suite("OrtCpu").get("time", "")) == pytest.approx(0.0275)


def test_every_kind_has_a_stock_class() -> None:
    assert set(STOCK_CLASSES) == set(KINDS)


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        (Label.NATIVE, None),
        (Label.ADAPTED, None),
        (Label.FALLBACK, None),
        (Label.PASS, None),
        (Label.UNSUPPORTED, "skipped"),
        (Label.XFAIL, "skipped"),
        (Label.SKIP, "skipped"),
        (Label.FAIL, "failure"),
        (Label.CRASH, "error"),
        (Label.TIMEOUT, "error"),
    ],
)
def test_a_label_has_its_element_and_is_told(label: Label, tag: str | None) -> None:
    report = sample_report()
    case = CaseResult("OrtCpu", "test_abs_cpu", "node", label, "because", error="Error: no")
    (found,) = suite("OrtCpu", replace(report, cases=(case,))).iter("testcase")
    element = outcome(found)
    assert (element.tag if element is not None else None) == tag
    assert element is None or element.get("type") == label.value
    assert found.find("properties/property[@name='label']").get("value") == label.value  # type: ignore[union-attr]


def test_a_skip_gives_its_reason_and_a_failure_its_error() -> None:
    skipped = outcome_of("OrtCpu", "test_adam_cpu")
    assert skipped is not None and skipped.get("message") == "OrtCpu cannot run model 'test_adam': it lacks Adam."
    crash = outcome_of("onnxruntime.backend", "test_if_cpu")
    assert crash is not None and (crash.get("message"), crash.text) == ("signal 11", "signal 11\nlast words")
    timeout = outcome_of("onnxruntime.backend", "test_squeezenet_cpu")
    assert timeout is not None and timeout.get("message") == "stopped after 60 s"


@pytest.mark.parametrize(
    ("name", "label", "message"),
    [
        ("test_tan_cpu", "native", "unexpected pass (native): remove it from"),
        ("test_single_relu_model_cpu", "unsupported", "needs no expectation, it is unsupported"),
    ],
)
def test_a_stale_expectation_is_a_failure(name: str, label: str, message: str) -> None:
    found = outcome_of("OrtCpu", name)
    assert found is not None and (found.tag, found.get("type")) == ("failure", label)
    assert str(found.get("message")).startswith(message)


def test_what_xml_forbids_is_left_out_and_all_else_stays() -> None:
    found = outcome_of("onnxruntime.backend", "test_tan_cpu")
    assert found is not None
    assert found.text == NASTY_ERROR.replace("\x1b", "").replace("\x00", "")
    report = sample_report()
    odd = "a\ud800b\ufffec\U0001f600d\ve\x85f"
    case = CaseResult("OrtCpu", "test_abs_cpu", "node", Label.FAIL, error=odd)
    (parsed,) = suite("OrtCpu", replace(report, cases=(case,))).iter("failure")
    assert parsed.text == "abc\U0001f600de\x85f"


def test_problems_of_expectations_are_a_failing_case() -> None:
    report = sample_report()
    (problem,) = report.backends["OrtOpenvino"].problems
    (case,) = (c for c in suite("OrtOpenvino").iter("testcase") if c.get("name") == "expectations")
    failure = outcome(case)
    assert failure is not None and (failure.tag, failure.get("message"), failure.text) == ("failure", problem, problem)
    assert case.get("classname") == "OrtOpenvino"
    assert not [c for c in suite("OrtCpu").iter("testcase") if c.get("name") == "expectations"]


def test_versions_and_adaptations_are_properties() -> None:
    s = suite("OrtOpenvino")
    properties = {p.get("name"): p.get("value") for p in s.findall("properties/property")}
    assert properties["openvino"] == "2026.4.1"
    assert properties["python"] == "3.12.4"
    assert properties["interrupted"] == "false"
    assert s.get("timestamp") == "2026-11-20T08:00:00+00:00"
    case = next(c for c in s.iter("testcase") if c.get("name") == "test_relu_cpu")
    assert [p.get("value") for p in case.findall("properties/property")] == [
        "adapted",
        "ir_version: IR version 14 to 13",
        "dynamic_shape: shape fixed",
    ]


def test_an_interrupted_run_says_so() -> None:
    found = suite("OrtCpu", sample_report(interrupted=True)).find("properties/property[@name='interrupted']")
    assert found is not None and found.get("value") == "true"
