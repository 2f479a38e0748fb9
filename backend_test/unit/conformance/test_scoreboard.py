# SPDX-License-Identifier: Apache-2.0
"""The files of ONNX's Backend Scoreboard, as it publishes them."""

from __future__ import annotations

import csv
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend_test.unit.conformance.sample_report import sample_report
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.scoreboard import write_scoreboard
from onnx_multi_backend.conformance.results import CaseResult

FILES = {"report.json", "trend.json", "ops.json", "nodes.csv", "models.csv", "metadata.csv", "pip-list.json"}


def only(backend: str, **changes: Any) -> Report:
    report = sample_report()
    run = replace(report.backends[backend], **changes)
    return replace(report, backends={backend: run}, cases=tuple(report.of(backend)))


def started_at(time: str, **changes: Any) -> Report:
    environment = replace(sample_report().backends["OrtCpu"].environment, started=time)
    return only("OrtCpu", environment=environment, **changes)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_one_backend_has_the_folder_to_itself(tmp_path: Path) -> None:
    write_scoreboard(only("OrtCpu"), tmp_path / "new" / "stable")
    assert {p.name for p in (tmp_path / "new" / "stable").iterdir()} == FILES


def test_several_backends_have_a_folder_each(tmp_path: Path) -> None:
    write_scoreboard(sample_report(), tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"OrtCpu", "OrtOpenvino", "onnxruntime.backend"}
    assert all({p.name for p in folder.iterdir()} == FILES for folder in tmp_path.iterdir())
    assert (tmp_path / "OrtOpenvino" / "nodes.csv").read_text(encoding="utf-8").splitlines()[0] == "Op,None"


def test_folders_are_safe_and_apart_whatever_the_names(tmp_path: Path) -> None:
    run = sample_report().backends["OrtCpu"]
    names = ("..", "../up", "a/b", "a:b", "A b", "a_b")
    report = replace(sample_report(), backends={name: replace(run, name=name) for name in names}, cases=())
    write_scoreboard(report, tmp_path / "inside")
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    folders = [p.name for p in (tmp_path / "inside").iterdir()]
    assert len({name.lower() for name in folders}) == len(names)
    assert all((tmp_path / "inside" / name / "report.json").is_file() for name in folders)


def test_the_report_lists_cases_by_outcome_as_pytest_names_them(tmp_path: Path) -> None:
    write_scoreboard(only("OrtOpenvino"), tmp_path)
    assert read(tmp_path / "report.json") == {
        "date": "11/20/2026 08:00:00",
        "failed": ["OnnxBackendNodeModelTest::test_adam_cpu"],
        "passed": [
            "OnnxBackendNodeModelTest::test_abs_cpu",
            "OnnxBackendNodeModelTest::test_cumsum_1d_cpu",
            "OnnxBackendNodeModelTest::test_relu_cpu",
            "OnnxBackendNodeModelTest::test_tan_cpu",
            "OnnxBackendPyTorchConvertedModelTest::test_Linear_cpu",
            "OnnxBackendPyTorchOperatorModelTest::test_operator_add_broadcast_cpu",
            "OnnxBackendRealModelTest::test_squeezenet_cpu",
            "OnnxBackendSimpleModelTest::test_single_relu_model_cpu",
        ],
        "skipped": ["OnnxBackendNodeModelTest::test_if_cpu"],
    }


@pytest.mark.parametrize("label", Label)
def test_what_does_not_pass_fails_unless_it_was_skipped(label: Label, tmp_path: Path) -> None:
    case = CaseResult("OrtCpu", "test_abs_cpu", "node", label)
    write_scoreboard(replace(only("OrtCpu"), cases=(case,)), tmp_path)
    content = read(tmp_path / "report.json")
    expected = "passed" if label.is_pass else "skipped" if label == Label.SKIP else "failed"
    assert [key for key in ("failed", "passed", "skipped") if content[key]] == [expected]


def test_dates_are_utc(tmp_path: Path) -> None:
    write_scoreboard(started_at("2026-11-21T01:30:00+02:00"), tmp_path)
    assert read(tmp_path / "report.json")["date"] == "11/20/2026 23:30:00"
    with (tmp_path / "metadata.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["Latest Update", "2026-11-20 23:30:00+00:00"]]


def test_operators_are_counted_once_a_case_by_domain(tmp_path: Path) -> None:
    write_scoreboard(only("onnxruntime.backend"), tmp_path)
    operators = read(tmp_path / "ops.json")
    keys = [(o["domain"], o["op_type"]) for o in operators]
    # Relu has three cases, one of which timed out; If's Constant is in a subgraph.
    assert keys == [
        *(("", op_type) for op_type in ("Abs", "Add", "Conv", "CumSum", "Gemm", "If", "Relu", "Tan")),
        ("ai.onnx.preview.training", "Adam"),
    ]
    assert operators[6] == {
        "domain": "",
        "op_type": "Relu",
        "passed_tests": 2,
        "failed_tests": 1,
        "skipped_tests": 0,
        "total_tests": 3,
    }
    assert operators[4]["skipped_tests"] == operators[4]["total_tests"] == 1
    assert read(tmp_path / "trend.json")[0]["total_ops"] == 9


def test_files_are_laid_out_as_the_scoreboard_lays_them_out(tmp_path: Path) -> None:
    write_scoreboard(only("OrtCpu"), tmp_path)
    for name in ("report.json", "trend.json", "ops.json"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), sort_keys=True, indent=4)


def test_packages_are_listed_as_pip_lists_them(tmp_path: Path) -> None:
    environment = replace(sample_report().environment, packages={"numpy": "2", "Jinja2": "3", "attrs": "25"})
    write_scoreboard(only("OrtCpu", environment=environment), tmp_path)
    assert (tmp_path / "pip-list.json").read_text(encoding="utf-8") == (
        '[{"name": "attrs", "version": "25"}, {"name": "Jinja2", "version": "3"}, {"name": "numpy", "version": "2"}]\n'
    )


def test_the_trend_begins_with_a_summary(tmp_path: Path) -> None:
    write_scoreboard(only("OrtOpenvino"), tmp_path)
    assert read(tmp_path / "trend.json") == [
        {
            "date": "11/20/2026 08:00:00",
            "failed": 1,
            "passed": 8,
            "skipped": 1,
            "total_ops": 9,
            "versions": [
                {"name": "onnx", "version": "1.23.2"},
                {"name": "onnxruntime", "version": "1.24.1"},
                {"name": "openvino", "version": "2026.4.1"},
            ],
        }
    ]


def test_the_trend_grows_where_something_changed_and_else_its_end_moves(tmp_path: Path) -> None:
    def dates() -> list[str]:
        return [summary["date"][:5] for summary in read(tmp_path / "trend.json")]

    for day, expected in (("01", ["01/01"]), ("02", ["01/01", "01/02"]), ("03", ["01/01", "01/03"])):
        write_scoreboard(started_at(f"2026-01-{day}T00:00:00+00:00"), tmp_path)
        assert dates() == expected
    newer = {"onnx": "1.23.2", "onnxruntime": "1.32.0"}
    write_scoreboard(started_at("2026-01-04T00:00:00+00:00", versions=newer), tmp_path)
    assert dates() == ["01/01", "01/03", "01/04"]
    write_scoreboard(started_at("2026-01-05T00:00:00+00:00", versions=newer), tmp_path)
    assert dates() == ["01/01", "01/03", "01/05"]
    write_scoreboard(started_at("2026-01-06T00:00:00+00:00"), tmp_path)
    assert dates() == ["01/01", "01/03", "01/05", "01/06"]


def test_a_trend_of_older_summaries_is_kept(tmp_path: Path) -> None:
    old = [{"date": "01/01/2020 00:00:00", "failed": 1, "passed": 2, "skipped": 3}] * 2
    (tmp_path / "trend.json").write_text(json.dumps(old), encoding="utf-8")
    write_scoreboard(only("OrtCpu"), tmp_path)
    trend = read(tmp_path / "trend.json")
    assert trend[:2] == old
    assert len(trend) == 3


@pytest.mark.parametrize("content", [b"", b"[{", b"{}", b"[1]", b"\xff\xfe"])
def test_a_damaged_trend_starts_anew_and_says_so(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "trend.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        write_scoreboard(only("OrtCpu"), tmp_path)
    assert len(read(tmp_path / "trend.json")) == 1
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "trend.json is damaged" in caplog.text


def test_a_new_trend_needs_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        write_scoreboard(only("OrtCpu"), tmp_path)
    assert not caplog.records


def test_an_interrupted_run_is_no_point_of_the_trend(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_scoreboard(only("OrtCpu"), tmp_path)
    before = (tmp_path / "trend.json").read_bytes()
    write_scoreboard(replace(only("OrtCpu"), cases=(), interrupted=True), tmp_path)
    assert (tmp_path / "trend.json").read_bytes() == before
    assert read(tmp_path / "report.json")["passed"] == []
    assert "the run was interrupted" in caplog.text


def test_the_scoreboards_generator_finds_the_operators(tmp_path: Path) -> None:
    """It reads the column that ONNX's coverage report has for a backend without a name."""
    write_scoreboard(only("OrtCpu"), tmp_path)
    with open(tmp_path / "nodes.csv", newline="") as file:
        read_as = {row["Op"]: row.get("None", "").replace("!", "").lower() for row in csv.DictReader(file)}
    assert read_as["Abs"] == "passed"
    assert read_as["Acosh"] in ("failed", "skipped")
    assert read_as["Summary"].endswith("node tests passed")


def test_a_run_of_some_cases_is_no_point_of_the_trend(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_scoreboard(only("OrtCpu"), tmp_path, trend=False)
    assert not (tmp_path / "trend.json").exists()
    assert (tmp_path / "report.json").exists()
    assert "only some cases were run" in caplog.text
