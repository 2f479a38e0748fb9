# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime refuses a model for as a whole, whatever its nodes, is mended, or told as what it is."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort import other_ways

X = np.float32([[-1, 2, 3]])


def same_names() -> ModelProto:
    """Nodes of one name, in the main graph and in branches, and one that has the name a second one would get."""
    made = [
        helper.make_graph(
            [
                helper.make_node("Abs", ["b"], [f"{name}_in"], name="n"),
                helper.make_node("Neg", [f"{name}_in"], [name], name="n"),
            ],
            name,
            [],
            [models.tensor(name, None)],
        )
        for name in ("t", "e")
    ]
    return models.model(
        [
            models.node("Abs", ["x"], ["a"], name="n"),
            models.node("Neg", ["a"], ["b"], name="n"),
            models.node("If", ["c"], ["d"], name="n", then_branch=made[0], else_branch=made[1]),
            models.node("Exp", ["d"], ["y"], name="n_2"),
        ],
        [models.tensor("x"), models.tensor("c", [], TensorProto.BOOL)],
        [models.tensor("y")],
    )


@pytest.mark.parametrize("true", [True, False])
def test_nodes_of_one_name(preset: type[omb.Preset], true: bool) -> None:
    rep = preset.prepare(same_names(), fallback="full")
    np.testing.assert_allclose(rep.run([X, np.bool_(true)])[0], np.exp(-np.abs(X)), rtol=1e-5)


def test_renaming_is_told(ort_cpu: type[omb.Preset]) -> None:
    (change,) = ort_cpu.prepare(same_names()).adaptations
    assert (change.pass_name, change.change) == ("node_names", "renamed 4")
    with pytest.raises(omb.UnsupportedModelError, match="same node name"):
        ort_cpu.prepare(same_names(), adapt=False)


def test_a_model_that_may_never_be_finished_is_not_renamed(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime refuses it at once for the names."""
    monkeypatch.setattr(other_ways, "is_endless", lambda contents: contents.model.graph.node[0].name == "n")
    with pytest.raises(omb.UnsupportedModelError, match="same node name"):
        ort_cpu.prepare(same_names())


def test_an_initializer_before_ir_4_that_is_no_input_and_only_a_body_reads(preset: type[omb.Preset]) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["a", "w"], ["b"])],
        "body",
        [models.tensor("i", [], models.INT64), models.tensor("go", [], TensorProto.BOOL), models.tensor("a", [1, 3])],
        [models.tensor("again", [], TensorProto.BOOL), models.tensor("b", [1, 3])],
    )
    made = models.model(
        [models.node("Loop", ["two", "", "x"], ["y"], body=body)],
        [models.tensor("x", [1, 3])],
        [models.tensor("y", [1, 3])],
        initializers={"two": np.int64(2), "w": np.float32([[1, 2, 3]]), "unread": np.zeros(3, np.float32)},
        opsets={"": 9},
        ir_version=3,
    )
    np.testing.assert_array_equal(preset.prepare(made, fallback="full").run([X])[0], X + 2 * np.float32([[1, 2, 3]]))


@pytest.mark.parametrize("held", ["initializer", "Constant"])
@pytest.mark.parametrize("raw", [True, False])
def test_more_values_than_the_shape_says(preset: type[omb.Preset], held: str, raw: bool) -> None:
    weight = numpy_helper.from_array(np.float32([[1, 2, 3]]), "w")
    if not raw:
        weight = helper.make_tensor("w", TensorProto.FLOAT, [1, 3], [1, 2, 3])
    weight.dims[1] = 1
    made = models.model([models.node("Add", ["x", "w"], ["y"])], [models.tensor("x")], [models.tensor("y")])
    if held == "initializer":
        made.graph.initializer.append(weight)
    else:
        made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weight))
    with pytest.raises(omb.InvalidModelError, match=r"the tensor 'w' holds are not as many as its shape \[1, 1\] says"):
        preset.prepare(made)
