# SPDX-License-Identifier: Apache-2.0
"""The schema describes every field of ``report.json`` as it is written; a later version may add some."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from backend_test.unit.conformance.sample_report import ENVIRONMENT, sample_report
from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.cases import KINDS
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import SCHEMA_VERSION, BackendRun, Report, ReportError
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.results import CaseResult, Change, PlacedNode
from onnx_multi_backend.host.processor import Processor

jsonschema = pytest.importorskip("jsonschema")

SCHEMA: dict[str, Any] = json.loads(
    resources.files("onnx_multi_backend.conformance.report").joinpath("report.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# What writes each object, and the fields that are keys elsewhere.
WRITTEN_BY: dict[str, tuple[type, set[str]]] = {
    "environment": (Environment, set()),
    "processor": (Processor, set()),
    "backend": (BackendRun, {"name"}),
    "case": (CaseResult, set()),
    "change": (Change, set()),
    "placed_node": (PlacedNode, set()),
    "model": (CaseFacts, set()),
    "operator_use": (OperatorUse, set()),
}


def field_names(kind: type) -> set[str]:
    named_tuple_fields = getattr(kind, "_fields", None)
    return set(named_tuple_fields) if named_tuple_fields else {f.name for f in fields(kind)}


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            yield node
        for child in node.values():
            yield from objects(child)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    "report",
    [
        sample_report(),
        sample_report(interrupted=True),
        Report(ENVIRONMENT, {}, ()),
        Report(ENVIRONMENT, {}, (CaseResult("", "test_x_cpu", "node", Label.PASS),), {"": CaseFacts("real", "", ())}),
    ],
    ids=["sample", "interrupted", "empty", "bare"],
)
def test_a_report_is_valid(report: Report) -> None:
    VALIDATOR.validate(report.to_dict())


def test_a_written_file_is_valid(tmp_path: Path) -> None:
    sample_report().write(tmp_path / "report.json")
    VALIDATOR.validate(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))


def test_the_sample_has_every_label_and_kind() -> None:
    report = sample_report()
    assert {c.label for c in report.cases} == set(Label)
    assert {c.kind for c in report.cases} == set(KINDS)


def test_every_label_and_kind_is_listed_and_each_label_explained() -> None:
    definitions = SCHEMA["$defs"]
    assert definitions["label"]["enum"] == [label.value for label in Label]
    assert definitions["kind"]["enum"] == list(KINDS)
    assert all(label.value in definitions["label"]["description"] for label in Label)


@pytest.mark.parametrize("name", WRITTEN_BY)
def test_every_field_of_a_class_is_a_property(name: str) -> None:
    kind, elsewhere = WRITTEN_BY[name]
    assert set(SCHEMA["$defs"][name]["properties"]) == field_names(kind) - elsewhere


def test_the_report_itself_has_its_fields_and_a_version() -> None:
    assert set(SCHEMA["properties"]) == field_names(Report) | {"schema_version"}


#: What reports of an older version do not have.
ADDED = {"processor"}


def test_every_property_is_required_and_described() -> None:
    found = list(objects(SCHEMA))
    assert len(found) == len(WRITTEN_BY) + 1
    for node in found:
        assert set(node["required"]) == set(node["properties"]) - ADDED
        assert all(len(p.get("description", "")) > 10 for p in node["properties"].values()), node["description"]


def test_durations_have_a_unit() -> None:
    assert "milliseconds" in SCHEMA["$defs"]["case"]["properties"]["duration_ms"]["description"]


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The sample as JSON has it, with one thing in it changed."""
    content = copy.deepcopy(sample_report().to_dict())
    node: Any = content
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return content


@pytest.mark.parametrize(
    "path",
    [
        ("new_field",),
        ("environment", "new_field"),
        ("backends", "OrtCpu", "new_field"),
        ("cases", 0, "new_field"),
        ("models", "test_abs_cpu", "new_field"),
        ("models", "test_abs_cpu", "operators", 0, "new_field"),
    ],
)
def test_a_new_field_leaves_a_report_valid_and_readable(path: tuple[str | int, ...]) -> None:
    content = changed(path, {"any": "thing"})
    VALIDATOR.validate(content)
    assert Report.from_dict(content) == sample_report()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cases", 0, "kind"), "unit"),
        (("cases", 0, "label"), "passed"),
        (("cases", 0, "duration_ms"), "1 ms"),
        (("cases", 0, "error"), None),
        (("cases", 0), "test_abs_cpu"),
        (("cases",), {}),
        (("cases", 0, "backend"), "Nowhere"),
        (("models",), {}),
        (("models", "test_abs_cpu", "operators", 0, "types"), "tensor(float)"),
        (("backends", "OrtCpu", "devices"), "CPU"),
        (("backends", "OrtCpu", "environment"), []),
        (("environment", "started"), "yesterday"),
        (("environment", "packages"), {"onnx": 1}),
        (("interrupted",), "no"),
    ],
)
def test_a_damaged_report_is_an_error_of_one_line(path: tuple[str | int, ...], value: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(changed(path, value)), encoding="utf-8")
    with pytest.raises(ReportError, match=r"report\.json: not a conformance report \(.+\)\.$") as caught:
        Report.read(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("cases", 0, "label"), "passed"),
        (("cases", 0, "kind"), "unit"),
        (("cases", 0, "duration_ms"), "1 ms"),
        (("environment", "cores"), 0),
        (("models", "test_abs_cpu", "operators", 0, "domain"), ""),
        (("models", "test_abs_cpu", "operators", 0, "since_version"), -1),
    ],
)
def test_what_is_not_written_so_is_invalid(path: tuple[str | int, ...], value: Any) -> None:
    assert not VALIDATOR.is_valid(changed(path, value))


def test_a_missing_field_is_invalid() -> None:
    content = sample_report().to_dict()
    del content["cases"][0]["unexpected"]
    assert not VALIDATOR.is_valid(content)
