# SPDX-License-Identifier: Apache-2.0
"""``nodes.csv`` and ``models.csv`` are those that ONNX's own coverage report writes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import defs

from backend_test.unit.conformance.sample_report import sample_report
from onnx_multi_backend.conformance.case_facts import CaseFacts, operators_of
from onnx_multi_backend.conformance.cases import find_case, load_model
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.tables import write_tables
from onnx_multi_backend.conformance.results import CaseResult

# Two operators of other domains, one with a subgraph, several cases of one operator, and models of every kind.
NAMES = (
    "test_abs_cpu",
    "test_adam_cpu",
    "test_ai_onnx_ml_binarizer_cpu",
    "test_if_cpu",
    "test_affine_grid_2d_expanded_cpu",
    "test_relu_cpu",
    "test_relu_expanded_ver18_cpu",
    "test_tan_cpu",
    "test_bvlc_alexnet_cpu",
    "test_squeezenet_cpu",
    "test_zfnet512_cpu",
    "test_single_relu_model_cpu",
    "test_Linear_cpu",
    "test_operator_add_broadcast_cpu",
)
SOME_FAIL: Mapping[str, Label] = {
    "test_ai_onnx_ml_binarizer_cpu": Label.UNSUPPORTED,
    "test_if_cpu": Label.SKIP,
    "test_relu_cpu": Label.FAIL,
    "test_tan_cpu": Label.XFAIL,
    "test_squeezenet_cpu": Label.CRASH,
}
OTHERS_FAIL: Mapping[str, Label] = {
    "test_abs_cpu": Label.TIMEOUT,
    "test_bvlc_alexnet_cpu": Label.FAIL,
    "test_zfnet512_cpu": Label.UNSUPPORTED,
}
NONE_PASSES: Mapping[str, Label] = dict.fromkeys(NAMES, Label.FAIL)


def real_report(backends: Mapping[str, Mapping[str, Label]], names: tuple[str, ...] = NAMES) -> Report:
    """Build a report on ONNX's own models in which all pass but what is named."""
    base = sample_report()
    models, cases = {}, []
    for name in names:
        case, model = find_case(name), load_model(name)
        assert case is not None
        models[name] = CaseFacts(case.kind, model.graph.name, operators_of(model))
    for backend, labels in backends.items():
        cases += [CaseResult(backend, n, models[n].kind, labels.get(n, Label.ADAPTED)) for n in names]
    runs = {backend: replace(base.backends["OrtCpu"], name=backend) for backend in backends}
    return replace(base, backends=runs, cases=tuple(cases), models=models)


def write_onnx_own(report: Report, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ONNX write its tables, one backend after the other, as its scoreboard accumulates them."""
    coverage = pytest.importorskip("onnx.backend.test.report.coverage")
    folder.mkdir()
    monkeypatch.setenv("CSVDIR", str(folder))
    for backend in report.backends:
        monkeypatch.setenv("BACKEND", backend)
        own = coverage.Coverage()
        for result in report.of(backend):
            model = load_model(result.name)
            own.add_proto(model, "loaded", result.kind == "real")
            if result.label.is_pass:
                own.add_proto(model, "passed", result.kind == "real")
        own.report_text(io.StringIO())


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def columns(path: Path) -> dict[str, dict[str, str]]:
    header, *rows = cells(path)
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


@pytest.mark.parametrize("labels", [{}, SOME_FAIL, OTHERS_FAIL, NONE_PASSES], ids=["all", "some", "others", "none"])
@pytest.mark.parametrize("name", ["nodes.csv", "models.csv"])
def test_one_backend_is_as_onnx_has_it(
    labels: Mapping[str, Label], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = real_report({"One": labels})
    write_onnx_own(report, tmp_path / "onnx", monkeypatch)
    write_tables(report, tmp_path / "ours")
    assert cells(tmp_path / "ours" / name) == cells(tmp_path / "onnx" / name)
    assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "onnx" / name).read_bytes()


@pytest.mark.parametrize("name", ["nodes.csv", "models.csv"])
def test_backends_stand_side_by_side_as_in_onnx(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = real_report({"One": SOME_FAIL, "Two, the second": OTHERS_FAIL})
    write_onnx_own(report, tmp_path / "onnx", monkeypatch)
    write_tables(report, tmp_path / "ours")
    assert cells(tmp_path / "ours" / name) == cells(tmp_path / "onnx" / name)


def test_the_comparison_has_something_to_compare(tmp_path: Path) -> None:
    write_tables(real_report({"One": SOME_FAIL}), tmp_path)
    nodes, models = columns(tmp_path / "nodes.csv"), columns(tmp_path / "models.csv")
    assert {nodes[op]["One"] for op in ("Abs", "Relu", "Gemm")} == {"Passed!"}
    assert {nodes[op]["One"] for op in ("Tan", "Floor", "Softplus")} == {"Failed!"}
    assert len(nodes) == 1 + sum(s.domain == "" for s in defs.get_all_schemas())
    assert "Adam" not in nodes
    assert models["Summary"]["One"] == "2/3 model tests passed"
    assert models["squeezenet_old"]["One"].endswith("nodes covered: Failed!")
    assert models["bvlc_alexnet"]["One"] == "9/9 nodes covered: Passed!"


def test_operators_of_any_domain_are_in_the_count(tmp_path: Path) -> None:
    write_tables(real_report({"One": {}}, ("test_abs_cpu", "test_adam_cpu")), tmp_path)
    assert columns(tmp_path / "nodes.csv")["Summary"]["One"].startswith("2/")


def test_operators_below_the_main_graph_do_not_count(tmp_path: Path) -> None:
    write_tables(real_report({"One": {}}, ("test_if_cpu",)), tmp_path)
    nodes = columns(tmp_path / "nodes.csv")
    assert (nodes["If"]["One"], nodes["Constant"]["One"]) == ("Passed!", "Failed!")


def test_what_a_backend_did_not_run_is_skipped_and_no_cell_is_empty(tmp_path: Path) -> None:
    report = real_report({"One": {}, "Two": {}, "Idle": {}})
    kept = tuple(
        c for c in report.cases if c.backend == "One" or (c.backend == "Two" and c.name != "test_squeezenet_cpu")
    )
    write_tables(replace(report, cases=kept), tmp_path)
    nodes, models = columns(tmp_path / "nodes.csv"), columns(tmp_path / "models.csv")
    assert models["squeezenet_old"] == {
        "One": "8/8 nodes covered: Passed!",
        "Two": "Skipped!",
        "Idle": "Skipped!",
    }
    assert nodes["Abs"] == {"One": "Passed!", "Two": "Passed!", "Idle": "Skipped!"}
    assert nodes["Summary"]["Idle"].startswith("0/")
    assert models["Summary"] == {
        "One": "3/3 model tests passed",
        "Two": "2/2 model tests passed",
        "Idle": "0/0 model tests passed",
    }
    assert all(cell for row in cells(tmp_path / "models.csv") for cell in row)


def test_some_backends_can_be_chosen(tmp_path: Path) -> None:
    write_tables(sample_report(), tmp_path / "made" / "here", {"OrtOpenvino": "None"})
    assert cells(tmp_path / "made" / "here" / "nodes.csv")[0] == ["Op", "None"]
    assert cells(tmp_path / "made" / "here" / "models.csv")[0] == ["Model", "None"]
