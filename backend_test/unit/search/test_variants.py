# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases in other forms compute the same, and a fault that only one of these forms shows is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from backend_test.search.mutations.seeds import cases
from backend_test.search.variants import NAMES, variant
from backend_test.unit.search.planted import WrongInBranches
from backend_test.unit.search.test_searches import planted, search

CASES = (
    "test_where_example",
    "test_reduce_max_bool_inputs",
    "test_reduce_max_keepdims_example",
    "test_squeeze",
    "test_unsqueeze_axis_1",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_they_compute_the_same(case: str, name: str) -> None:
    found = next(c for c in cases()[0] if c.name == case)
    given, right = found.data_sets[0]
    feeds = {value.name: np.asarray(x) for value, x in zip(found.model.graph.input, given, strict=True)}
    made = variant(name, found.model, feeds)
    assert made is not None
    model, fed = made
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == list(fed)
    assert model.SerializeToString() != found.model.SerializeToString()
    for x, y in zip(ReferenceEvaluator(model).run(None, fed), right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_a_fault_of_one_form_is_found(tmp_path: Path) -> None:
    preset = planted(WrongInBranches.__name__)
    done = search("variants", tmp_path, f"--preset={preset}", "--cases=test_relu")
    assert done.returncode == 1, done.stderr
    found = [json.loads(line) for line in (tmp_path / preset / "journal.jsonl").read_text().splitlines()[1:]]
    assert len(found) == len(NAMES)
    wrong = {entry["i"] for entry in found if entry["category"] == "worse-wrong"}
    assert wrong == {i for i, name in enumerate(NAMES) if name.startswith("in a branch")}
