# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases with other attributes, operands and sizes: the same random numbers make the same, valid models."""

from __future__ import annotations

import random
from collections import Counter

import onnx
import pytest

from backend_test.search.graphs.altered.attributes import other_attribute
from backend_test.search.graphs.altered.generate import random_case
from onnx_multi_backend.models.graph_walk import all_nodes


def test_cases_are_valid_and_the_same_again() -> None:
    operators = Counter[str]()
    for seed in range(300):
        made, again = (random_case(random.Random(seed)) for _ in range(2))
        assert made.model == again.model
        onnx.shape_inference.infer_shapes(made.model, check_type=True, strict_mode=True)
        operators.update(node.op_type for node in made.model.graph.node)
        assert [feeds.keys() for feeds in made.feeds] == [{value.name for value in made.model.graph.input}] * 2
        for value in made.model.graph.input:
            shape = value.type.tensor_type.shape
            sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]
            for feeds in made.feeds:
                assert all(a in (None, b) for a, b in zip(sizes, feeds[value.name].shape, strict=True))
    assert len(operators) > 80


@pytest.mark.parametrize("operator", ["Resize", "LSTM"])
def test_of_one_operator(operator: str) -> None:
    for seed in range(20):
        assert any(n.op_type == operator for n in all_nodes(random_case(random.Random(seed), [operator]).model))


def test_each_kind_of_attribute_changes() -> None:
    node = onnx.helper.make_node(
        "GRU", ["x", "w", "r"], ["y"], hidden_size=3, clip=1.0, activations=["Tanh", "Relu"], direction="forward"
    )
    changed = set[str]()
    for seed in range(200):
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], []))
        other_attribute(model, 22, random.Random(seed))
        now = {a.name: a.SerializeToString() for a in model.graph.node[0].attribute}
        before = {a.name: a.SerializeToString() for a in node.attribute}
        changed |= {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}
    assert changed >= {"activation_alpha", "activations", "clip", "direction", "hidden_size", "linear_before_reset"}
