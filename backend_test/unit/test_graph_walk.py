# SPDX-License-Identifier: Apache-2.0
"""A walk over a model finds every node, whatever holds it."""

from __future__ import annotations

import onnx.defs
import pytest
from onnx import helper

from backend_test.unit import models
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS, all_nodes


def test_these_operators_hold_graphs() -> None:
    kinds = (onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS)
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""]
    assert {s.name for s in schemas if any(a.type in kinds for a in s.attributes.values())} == WITH_GRAPHS


@pytest.mark.parametrize(
    ("operator", "domain"), [("If", ""), ("Unknown", ""), ("Relu", "own"), ("If", "ai.onnx"), ("Called", "")]
)
def test_nodes_in_a_graph_of_a_node_are_found(operator: str, domain: str) -> None:
    inner = helper.make_graph([helper.make_node("Tanh", ["x"], ["t"])], "inner", [], [])
    made = models.model(
        [helper.make_node(operator, ["x"], ["y"], domain=domain, body=inner)],
        [models.tensor("x", [1])],
        [models.tensor("y", [1])],
    )
    assert [node.op_type for node in all_nodes(made)] == [operator, "Tanh"]


def test_a_local_function_may_have_the_name_of_an_operator() -> None:
    inner = helper.make_graph([helper.make_node("Tanh", ["x"], ["t"])], "inner", [], [])
    made = models.model(
        [helper.make_node("Relu", ["x"], ["y"], body=inner)], [models.tensor("x", [1])], [models.tensor("y", [1])]
    )
    made.functions.add(name="Relu")
    assert [node.op_type for node in all_nodes(made)] == ["Relu", "Tanh"]
