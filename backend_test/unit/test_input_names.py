# SPDX-License-Identifier: Apache-2.0
"""An input goes where the model says, whatever an engine does to names and order."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

A, B, C = (np.full((1, 3), v, np.float32) for v in (100, 10, 1))


def test_an_unused_input_is_taken_and_checked(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Neg", ["b"], ["y"])],
        [models.tensor("unused", ["N", 5]), models.tensor("b")],
        [models.tensor("y")],
    )
    rep = engine.prepare(made)
    unused = np.zeros((1, 5), np.float32)
    np.testing.assert_array_equal(rep.run([unused, B])[0], -B)
    np.testing.assert_array_equal(rep.run({"b": B, "unused": unused})[0], -B)
    with pytest.raises(omb.InputError, match="unused"):
        rep.run({"b": B})
    with pytest.raises(omb.InputError, match="dimension 1 is 3"):
        rep.run([A, B])


def test_inputs_used_in_another_order_than_declared(preset: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Sub", ["c", "b"], ["cb"]), models.node("Mul", ["cb", "a"], ["y"])],
        [models.tensor("a"), models.tensor("b"), models.tensor("c")],
        [models.tensor("y")],
    )
    np.testing.assert_array_equal(preset.prepare(made).run([A, B, C])[0], (C - B) * A)


#: Models with nodes that pass a value on, which engines remove.
PASS_ON: dict[str, tuple[ModelProto, np.ndarray]] = {
    "dropout of both": (
        models.model(
            [
                models.node("Dropout", ["a"], ["da"], name="one"),
                models.node("Dropout", ["b"], ["db"], name="two"),
                models.node("Sub", ["da", "db"], ["y"]),
            ],
            [models.tensor("a"), models.tensor("b")],
            [models.tensor("y")],
        ),
        A - B,
    ),
    "sum of one": (
        models.model(
            [models.node("Sum", ["b"], ["sb"]), models.node("Sub", ["a", "sb"], ["y"])],
            [models.tensor("a"), models.tensor("b")],
            [models.tensor("y")],
        ),
        A - B,
    ),
    "identities crossing": (
        models.model(
            [
                models.node("Identity", ["b"], ["x"], name="one"),
                models.node("Identity", ["a"], ["z"], name="two"),
                models.node("Sub", ["z", "x"], ["y"]),
            ],
            [models.tensor("a"), models.tensor("b")],
            [models.tensor("y")],
        ),
        A - B,
    ),
    "dropout read by a subgraph": (
        models.model(
            [
                models.node("Dropout", ["b"], ["db"]),
                models.node(
                    "If",
                    ["yes"],
                    ["y"],
                    then_branch=helper.make_graph(
                        [helper.make_node("Sub", ["a", "db"], ["t"])], "then", [], [models.tensor("t")]
                    ),
                    else_branch=helper.make_graph(
                        [helper.make_node("Sub", ["db", "a"], ["e"])], "else", [], [models.tensor("e")]
                    ),
                ),
            ],
            [models.tensor("yes", [], 9), models.tensor("a", [1, 3]), models.tensor("b", [1, 3])],
            [models.tensor("y", [1, 3])],
        ),
        A - B,
    ),
}


@pytest.mark.parametrize("name", PASS_ON)
def test_a_node_that_passes_its_value_on_does_not_lose_the_input(preset: type[omb.Preset], name: str) -> None:
    made, expected = PASS_ON[name]
    inputs = [np.array(True), A, B] if len(made.graph.input) == 3 else [A, B]
    names = [i.name for i in made.graph.input]
    rep = preset.prepare(made)
    np.testing.assert_array_equal(rep.run(inputs)[0], expected)
    np.testing.assert_array_equal(rep.run(dict(zip(reversed(names), reversed(inputs), strict=True)))[0], expected)


@pytest.mark.parametrize("op_type", ["Dropout", "Sum", "Identity", "Max"])
def test_two_outputs_that_are_two_inputs_passed_on(engine: type[omb.Preset], op_type: str) -> None:
    made = models.model(
        [models.node(op_type, ["b"], ["y1"], name="one"), models.node(op_type, ["a"], ["y2"], name="two")],
        [models.tensor("a"), models.tensor("b")],
        [models.tensor("y1"), models.tensor("y2")],
    )
    result = engine.prepare(made).run([A, B])
    np.testing.assert_array_equal(result["y1"], B)
    np.testing.assert_array_equal(result["y2"], A)


def test_an_input_that_is_passed_on_and_used_too(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Dropout", ["a"], ["y1"]), models.node("Sub", ["a", "b"], ["y2"])],
        [models.tensor("a"), models.tensor("b")],
        [models.tensor("y1"), models.tensor("y2")],
    )
    result = engine.prepare(made).run([A, B])
    np.testing.assert_array_equal(result["y1"], A)
    np.testing.assert_array_equal(result["y2"], A - B)


@pytest.mark.parametrize("kind", ["unused", "dead", "shape", "like"])
def test_inputs_that_nothing_reads_shift_no_other(preset: type[omb.Preset], kind: str) -> None:
    shape = (1, 3)
    inputs = [
        models.tensor("u", (2, 3)),
        models.tensor("b", shape),
        models.tensor("v", (4,)),
        models.tensor("c", shape),
    ]
    nodes = [models.node("Sub", ["b", "c"], ["d"])]
    if kind == "dead":
        nodes += [models.node("Neg", ["u"], ["nothing"]), models.node("Relu", ["d"], ["y"])]
    elif kind == "shape":
        nodes += [models.node("Size", ["u"], ["n"]), models.node("Cast", ["n"], ["f"], to=1)]
        nodes += [models.node("Min", ["d", "f"], ["y"])]
    elif kind == "like":
        nodes += [models.node("CastLike", ["d", "v"], ["e"]), models.node("Relu", ["e"], ["y"])]
    else:
        nodes += [models.node("Relu", ["d"], ["y"])]
    made = models.model(nodes, inputs, [models.tensor("y", shape)])
    given = [np.full((2, 3), 50, np.float32), B, np.full(4, 70, np.float32), C]
    rep = preset.prepare(made, fallback="full")
    assert [i.name for i in rep.get_inputs()] == ["u", "b", "v", "c"]
    expected = np.minimum(B - C, 6) if kind == "shape" else B - C
    np.testing.assert_array_equal(rep.run(given)[0], expected)
    np.testing.assert_array_equal(rep.bind(given).run()[0], expected)
