# SPDX-License-Identifier: Apache-2.0
"""Reports of several environments in one, and what changed between two."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend_test.unit.conformance.sample_report import ENVIRONMENT, sample_report
from onnx_multi_backend.conformance import (
    BackendRun,
    CaseResult,
    Label,
    Report,
    ReportError,
    compare_reports,
    describe_changes,
    merge,
    render_changes,
)
from onnx_multi_backend.host.processor import Processor

ZEN = Processor("AuthenticAMD", 26, 2, "EPYC", frozenset({"avx2", "avx512f"}))
HASWELL = Processor("GenuineIntel", 6, 60, "Core i7", frozenset({"avx2"}))


def report(labels: Mapping[str, Label], *, name: str = "OrtCpu", version: str = "1.31.1", **options: Any) -> Report:
    run = BackendRun(name, "a.B", name, ("CPU",), options, {"onnxruntime": version}, "", (), ENVIRONMENT)
    cases = tuple(CaseResult(name, case, "node", label, error="E: x") for case, label in labels.items())
    return Report(ENVIRONMENT, {name: run}, cases)


ONE = {"test_a_cpu": Label.NATIVE}


def test_backends_of_several_reports_stand_side_by_side() -> None:
    merged = merge([report(ONE), report(ONE, name="Openvino")], ENVIRONMENT)
    assert list(merged.backends) == ["OrtCpu", "Openvino"]
    assert [c.backend for c in merged.cases] == ["OrtCpu", "Openvino"]


def test_one_backend_of_two_environments_is_told_apart_by_what_differs() -> None:
    merged = merge([report(ONE), report(ONE, version="1.24.1"), report(ONE, fallback="full")], ENVIRONMENT)
    assert list(merged.backends) == [
        "OrtCpu (onnxruntime 1.31.1)",
        "OrtCpu (onnxruntime 1.24.1)",
        "OrtCpu (fallback=full, onnxruntime 1.31.1)",
    ]
    assert [c.backend for c in merged.cases] == list(merged.backends)
    with pytest.raises(ReportError, match="'OrtCpu' is in several of the reports"):
        merge([report(ONE), report(ONE)], ENVIRONMENT)


def test_reports_that_nothing_sets_apart_are_named() -> None:
    reports = [report(ONE), report(ONE, name="Openvino"), report(ONE)]
    with pytest.raises(ReportError, match=r"and processor: a\.json and c\.json\. Leave one out"):
        merge(reports, ENVIRONMENT, sources=["a.json", "b.json", "c.json"])


def test_a_folder_stands_for_the_report_in_it(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=rf"^{tmp_path}: the folder holds no report\.json"):
        Report.read(tmp_path)
    report({}).write(tmp_path / "report.json")
    assert list(Report.read(tmp_path).backends) == ["OrtCpu"]


def on(processor: Processor, **changes: Any) -> Report:
    environment = replace(ENVIRONMENT, cpu=processor.name, processor=processor)
    one = report(ONE, **changes)
    (run,) = one.backends.values()
    return replace(one, backends={run.name: replace(run, environment=environment)})


def test_where_nothing_else_sets_runs_apart_the_processor_does() -> None:
    merged = merge([on(ZEN), on(HASWELL), on(HASWELL, version="1.24.1")], ENVIRONMENT)
    assert list(merged.backends) == [
        "OrtCpu (onnxruntime 1.31.1, EPYC, AVX-512)",
        "OrtCpu (onnxruntime 1.31.1, Core i7, AVX2)",
        "OrtCpu (onnxruntime 1.24.1)",
    ]
    vnni = replace(ZEN, instruction_sets=ZEN.instruction_sets | {"avx512_vnni"})
    assert list(merge([on(ZEN), on(vnni)], ENVIRONMENT).backends) == [
        "OrtCpu (EPYC (AuthenticAMD, family 26, model 2): avx2 avx512f)",
        "OrtCpu (EPYC (AuthenticAMD, family 26, model 2): avx2 avx512f avx512_vnni)",
    ]


def test_a_comparison_says_that_the_processor_is_another() -> None:
    changes = compare_reports(on(ZEN), on(HASWELL))
    (line,) = describe_changes(changes)
    assert line == (
        "OrtCpu ran on another processor: was EPYC (AuthenticAMD, family 26, model 2), "
        "is Core i7 (GenuineIntel, family 6, model 60), without avx512f"
    )
    assert "`OrtCpu` ran on another processor: was EPYC" in render_changes(changes, "old.json")
    assert describe_changes(compare_reports(on(ZEN), on(ZEN))) == []


def test_a_report_of_an_older_version_tells_less_of_the_processor(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    sample_report().write(file)
    content = json.loads(file.read_text())
    environments = [content["environment"], *(run["environment"] for run in content["backends"].values())]
    for environment in environments:
        environment.pop("processor", None)
    file.write_text(json.dumps(content))
    old = Report.read(file)
    assert old.environment == replace(ENVIRONMENT, processor=None)
    assert old.environment.hardware == "A Processor 9000"
    assert describe_changes(compare_reports(old, sample_report())) == []


def test_a_report_survives_its_file(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    sample_report().write(file)
    assert Report.read(file) == sample_report()
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    with pytest.raises(ReportError, match="its schema_version is 99"):
        Report.read(file)
    file.write_text('{"schema_version": 1}')
    with pytest.raises(ReportError, match="not a conformance report"):
        Report.read(file)


def test_changes_begin_with_what_fails_newly() -> None:
    old = report(
        {
            "better": Label.FAIL,
            "refused": Label.UNSUPPORTED,
            "adapted": Label.NATIVE,
            "lost": Label.NATIVE,
            "same": Label.FAIL,
            "gone": Label.NATIVE,
        }
    )
    new = report(
        {
            "better": Label.NATIVE,
            "refused": Label.XFAIL,
            "adapted": Label.ADAPTED,
            "lost": Label.CRASH,
            "same": Label.FAIL,
            "new": Label.NATIVE,
        }
    )
    changes = compare_reports(old, new)
    assert [c.name for c in changes.labels] == ["lost", "refused", "adapted", "better"]
    assert [c.name for c in changes.regressions] == ["lost", "refused", "adapted"]
    assert changes.common == 5
    assert (changes.only_old, changes.only_new) == ((("OrtCpu", 1),), (("OrtCpu", 1),))
    assert describe_changes(changes)[0] == "newly failing: OrtCpu lost: native -> crash: E: x"
    assert "| newly failing | `OrtCpu` | `lost` | native | crash | E: x |" in render_changes(changes, "old.json")
    assert compare_reports(old, replace(old, cases=old.cases)).labels == ()
