# SPDX-License-Identifier: Apache-2.0
"""Operator coverage: by domain and operator, strict, with ONNX's own looser count beside it."""

from __future__ import annotations

import io

import pytest
from onnx.backend.test.report.coverage import Coverage

from backend_test.unit.conformance.toys import TalkingBackend
from onnx_multi_backend.conformance import (
    BackendRef,
    Label,
    Operator,
    Plan,
    Report,
    Selection,
    coverage_text,
    operator_coverage,
    run_conformance,
)
from onnx_multi_backend.conformance.cases import load_model


@pytest.fixture(scope="module")
def report() -> Report:
    selection = Selection(operators=["Abs", "Floor", "Loop", "Selu", "Tan", "Binarizer", "Neg"])
    return run_conformance([Plan(BackendRef.of(TalkingBackend, name="toy"))], selection, jobs=2)


def test_an_operator_passes_only_where_every_one_of_its_cases_does(report: Report) -> None:
    found = operator_coverage(report, "toy")
    for operator, coverage in found.items():
        labels = [
            case.label
            for case in report.cases
            if operator in [use.operator for use in report.models[case.name].operators]
        ]
        assert coverage.tried.cases == len(labels)
        assert coverage.passed == all(label.is_pass for label in labels)
        assert {label: tried.cases for label, tried in coverage.by_label.items()} == {
            label: labels.count(label) for label in set(labels)
        }
    assert not found[Operator("ai.onnx", "Floor")].passed
    assert found[Operator("ai.onnx", "Neg")].by_label[Label.ADAPTED].cases


def test_versions_attributes_and_types_are_told(report: Report) -> None:
    found = operator_coverage(report, "toy")
    selu = found[Operator("ai.onnx", "Selu")].to_dict()
    assert 6 in selu["since_versions"]
    assert {"alpha", "gamma"} <= set(selu["attributes"])
    assert selu["types"] == ["tensor(float)"]
    assert found[Operator("ai.onnx.ml", "Binarizer")].to_dict()["since_versions"] == [1]


def test_the_looser_count_is_onnx_own(report: Report) -> None:
    stock = Coverage()
    for case in report.cases:
        if case.label.is_pass:
            stock.add_proto(load_model(case.name), "passed", False)
    loose = {o.op_type for o, c in operator_coverage(report, "toy").items() if c.passed_as_onnx_counts}
    assert loose == set(stock.buckets["passed"])
    text = io.StringIO()
    stock.report_text(text)
    total = text.getvalue().splitlines()[1].rpartition("/")[2]
    assert f"/{total}" in coverage_text(report, "toy").splitlines()[1]
