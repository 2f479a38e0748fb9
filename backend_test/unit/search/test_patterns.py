# SPDX-License-Identifier: Apache-2.0
"""Patterns changed in a few places: the same random numbers make the same, valid models."""

from __future__ import annotations

import random
from collections import Counter

import onnx
import pytest

from backend_test.search.graphs.mutated.changes import CHANGES
from backend_test.search.graphs.mutated.generate import random_pattern
from backend_test.search.graphs.mutated.patterns import Pattern, drawn, patterns


def test_patterns_are_valid_and_the_same_again() -> None:
    operators = Counter[str]()
    for seed in range(200):
        made, again = (random_pattern(random.Random(seed)) for _ in range(2))
        assert made.model == again.model
        onnx.shape_inference.infer_shapes(made.model, check_type=True, strict_mode=True)
        operators.update(node.op_type for node in made.model.graph.node)
        assert [feeds.keys() for feeds in made.feeds] == [{value.name for value in made.model.graph.input}] * 2
    assert operators.keys() >= {"Conv", "DequantizeLinear", "MatMul", "Softmax"}


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.name)
def test_each_pattern_by_itself(pattern: Pattern) -> None:
    onnx.shape_inference.infer_shapes(drawn(pattern, random.Random(0)), check_type=True, strict_mode=True)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_makes_another_model(change: object) -> None:
    changed = 0
    for seed, pattern in enumerate(patterns()):
        model = drawn(pattern, random.Random(seed))
        before = model.SerializeToString()
        assert callable(change)
        change(model, random.Random(seed))
        changed += model.SerializeToString() != before
    assert changed > 10
