# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases in other forms compute the same, and a fault that only one of these forms shows is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from backend_test.search.cases import cases
from backend_test.search.forms import NAMES, Case, in_form
from backend_test.search.forms.types import are_right
from backend_test.unit.search.planted import WrongInBranches
from backend_test.unit.search.test_searches import planted, search
from backend_test.variants import paired, whole

CASES = (
    "test_where_example",
    "test_reduce_max_bool_inputs",
    "test_reduce_max_keepdims_example",
    "test_squeeze",
    "test_unsqueeze_axis_1",
)


@pytest.mark.parametrize("name", NAMES)
def test_they_compute_the_same(name: str) -> None:
    tried = [_computes_the_same(whole(case), name) for case in cases()[0] if case.name in CASES]
    assert any(tried)


def _computes_the_same(case: Case, name: str) -> bool:
    """Whether the case has this form."""
    made = in_form(name, case)
    if made is None:
        return False
    onnx.checker.check_model(made.model, full_check=True)
    assert [value.name for value in made.model.graph.input] == list(made.feeds)
    assert made.model.SerializeToString() != case.model.SerializeToString()
    if made.results is None:  # of another type
        results = ReferenceEvaluator(made.model).run(None, made.feeds)
        return are_right(made.model, results, case.results or [])
    # The evaluator joins the rows of a Loop, where it should stack them.
    results = onnxruntime.InferenceSession(made.model.SerializeToString()).run(None, made.feeds)
    for x, y in zip(results, made.results, strict=True):
        if y.dtype == object:
            np.testing.assert_array_equal(x, y)
        else:
            np.testing.assert_allclose(x, y, rtol=1e-6)
    return True


def test_a_fault_of_one_form_is_found(tmp_path: Path) -> None:
    preset = planted(WrongInBranches.__name__)
    done = search("variants", tmp_path, f"--preset={preset}", "--cases=test_relu")
    assert done.returncode == 1, done.stderr
    found = [json.loads(line) for line in (tmp_path / preset / "journal.jsonl").read_text().splitlines()[1:]]
    assert len(found) == len(NAMES)
    wrong = {entry["i"] for entry in found if entry["category"] == "worse-wrong"}
    assert wrong == {i for i, name in enumerate(NAMES) if name.startswith("in a branch")}


def test_a_pair_is_evaluated_where_its_type_changes() -> None:
    """The evaluator joins the rows of the loop around it."""
    case = whole(next(case for case in cases()[0] if case.name == "test_reduce_max_keepdims_example"))

    def evaluate(typed: Case) -> Case:
        return typed._replace(results=list(ReferenceEvaluator(typed.model).run(None, typed.feeds)))

    made = in_form("in a loop, in int32", case, evaluate)
    assert made is not None and made.results is not None
    assert made.results[0].dtype == np.int32
    results = onnxruntime.InferenceSession(made.model.SerializeToString()).run(None, made.feeds)
    for x, y in zip(results, made.results, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_seed_draws_pairs() -> None:
    drawn = [name for _, name in paired("test_relu", 1)]
    assert len(drawn) == len(NAMES)
    assert drawn == [name for _, name in paired("test_relu", 1)] != [name for _, name in paired("test_relu", 2)]
    assert {name.count(", ") for name in drawn} == {1, 2}
