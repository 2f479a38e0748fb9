# SPDX-License-Identifier: Apache-2.0
"""Models whose nodes are not in order, as ONNX Runtime's float16 converter writes them, run: engines sort the nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.float32([[-1, 2, 3]])


def half() -> ModelProto:
    """In half precision but for its input and output; the input's cast is the last node."""
    return models.model(
        [
            models.node("Relu", ["half"], ["positive"]),
            models.node("Neg", ["positive"], ["negative"]),
            models.node("Cast", ["negative"], ["y"], to=TensorProto.FLOAT),
            models.node("Cast", ["x"], ["half"], name="of_x", to=TensorProto.FLOAT16),
        ],
        [models.tensor("x", ["N", 3])],
        [models.tensor("y", ["N", 3])],
    )


def branch(name: str, operator: str) -> GraphProto:
    """Reads a value of the outer graph, and has its own nodes the wrong way round."""
    nodes = [helper.make_node("Neg", [f"{name}_in"], [name]), helper.make_node(operator, ["outer"], [f"{name}_in"])]
    return helper.make_graph(nodes, name, [], [models.tensor(name, None)])


def nested() -> ModelProto:
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Abs"))
    return models.model(
        [choice, models.node("Exp", ["x"], ["outer"])],
        [models.tensor("x", ["N", 3]), models.tensor("c", [], TensorProto.BOOL)],
        [models.tensor("y", ["N", 3])],
    )


@pytest.mark.parametrize("given", ["path", "bytes"])
def test_nodes_in_any_order_run(preset: type[omb.Preset], tmp_path: Path, given: str) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(half(), path)
    rep = preset.prepare(path if given == "path" else path.read_bytes(), fallback="full")
    np.testing.assert_array_equal(rep.run(X)[0], -np.maximum(X, 0))
    assert "node_order" not in {a.pass_name for a in rep.adaptations}  # the engine sorts them


def test_nodes_of_subgraphs_too(engine: type[omb.Preset]) -> None:
    rep = engine.prepare(nested())
    assert "node_order" in {a.pass_name for a in rep.adaptations}
    assert "node_order" not in {a.pass_name for a in engine.prepare(models.relu()).adaptations}
    for c in (True, False):
        np.testing.assert_allclose(rep.run({"x": X, "c": np.array(c)})[0], -np.exp(X), rtol=1e-6)


def test_with_fixed_shapes_and_from_a_cache(engine: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        rep = engine.prepare(half(), input_shapes={"x": (2, 3)}, cache_dir=tmp_path)
        np.testing.assert_array_equal(rep.run(np.concatenate([X, X]))[0], -np.maximum(np.concatenate([X, X]), 0))


def test_what_has_no_order_is_not_valid(engine: type[omb.Preset]) -> None:
    cycle = half()
    cycle.graph.node[3].input[0] = "positive"
    nobodys = half()
    nobodys.graph.node[3].input[0] = "nobodys"
    for model in (cycle, nobodys):
        with pytest.raises(omb.InvalidModelError, match="topologically sorted"):
            engine.prepare(model)
