# SPDX-License-Identifier: Apache-2.0
"""Optional inputs and outputs that are named "" at the end of a node mean the same as leaving them out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.models import INT64

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WEIGHT = np.full((3, 4), 2, np.float32)


def layer_norm(last: str, outputs: list[str] | None = None) -> onnx.NodeProto:
    return models.node("LayerNormalization", ["x", "w", last], outputs or ["y"], axis=1)


def whole(nodes: list[onnx.NodeProto], **fields: Any) -> ModelProto:
    return models.model(
        nodes, [models.tensor("x", (2, 3, 4))], [models.tensor("y", None)], initializers={"w": WEIGHT}, **fields
    )


def within_if() -> ModelProto:
    def branch(name: str) -> onnx.GraphProto:
        node = models.node("LayerNormalization", ["x", "w", ""], [name], axis=1)
        return helper.make_graph([node], name, [], [models.tensor(name, (2, 3, 4))])

    made = whole([models.node("If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("e"))])
    made.graph.input.append(models.tensor("c", (), onnx.TensorProto.BOOL))
    return made


def calling(arguments: list[str], takes: list[str], body: onnx.NodeProto) -> ModelProto:
    function = helper.make_function("local", "Norm", takes, ["y"], [body], [helper.make_opsetid("", 20)])
    made = whole([models.node("Norm", arguments, ["y"], domain="local")], opsets={"local": 1})
    made.functions.append(function)
    return made


def body(last: str) -> onnx.NodeProto:
    return models.node("LayerNormalization", ["x", "w", last], ["y"], axis=1)


LAYER_NORMS = {
    "in the graph": whole([layer_norm("")]),
    "with outputs": whole([layer_norm("", ["y", "", ""])]),
    "in a subgraph": within_if(),
    "in a function": calling(["x", "w"], ["x", "w"], body("")),
    "a call that is short": calling(["x", "w"], ["x", "w", "b"], body("b")),
    'a call that ends in ""': calling(["x", "w", ""], ["x", "w", "b"], body("b")),
}


@pytest.mark.parametrize("form", LAYER_NORMS)
def test_a_layer_norm_runs(preset: type[omb.Preset], form: str) -> None:
    prepared = preset.prepare(LAYER_NORMS[form])
    feeds = {"x": X, **({"c": np.array(True)} if form == "in a subgraph" else {})}
    centred = X - X.mean((1, 2), keepdims=True)
    wanted = 2 * centred / np.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(prepared.run(feeds)[0], wanted, rtol=1e-4, atol=1e-5)
    assert "trailing_empties" in {change.pass_name for change in prepared.adaptations}


def one(op_type: str, shape: tuple[int, ...], count: int, opset: int = 20, **attributes: Any) -> ModelProto:
    node = models.node(op_type, ["x", *[""] * count], ["y"], **attributes)
    return models.model([node], [models.tensor("x", shape)], [models.tensor("y", None)], opsets={"": opset})


def gemm() -> ModelProto:
    node = models.node("Gemm", ["x", "w", ""], ["y"])
    return models.model(
        [node],
        [models.tensor("x", (2, 3))],
        [models.tensor("y", None)],
        initializers={"w": np.ones((3, 3), np.float32)},
    )


OTHERS = {
    "Gemm": (gemm(), (2, 3), [[3, 3, 3]] * 2),
    "ReduceSum": (one("ReduceSum", (2, 3), 1), (2, 3), [[6]]),
    "Squeeze": (one("Squeeze", (1, 3), 1), (1, 3), [1, 1, 1]),
    "Split": (one("Split", (3,), 1, num_outputs=1), (3,), [1, 1, 1]),
    "Clip": (one("Clip", (3,), 2), (3,), [1, 1, 1]),
    "DFT": (one("DFT", (1, 2, 1), 2), (1, 2, 1), [[[2, 0], [0, 0]]]),
}


@pytest.mark.parametrize("shape", [(2, 3), ("a", "b")])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_a_pad_as_pytorch_writes_it_stays(preset: type[omb.Preset], mode: str, shape: tuple[int | str, ...]) -> None:
    """Copying the weights for it would take as long as all else."""
    model = models.model(
        [models.node("Pad", ["x", "p", ""], ["y"], mode=mode)],
        [models.tensor("x", shape)],
        [models.tensor("y", None)],
        initializers={"p": np.int64([1, 0, 0, 2])},
        opsets={"": 17},
    )
    prepared = preset.prepare(model, fallback="full")
    assert not any(change.pass_name == "trailing_empties" for change in prepared.adaptations)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(prepared.run([x])[0], np.pad(x, [(1, 0), (0, 2)], mode=mode))


@pytest.mark.parametrize("form", OTHERS)
def test_other_operators_run(preset: type[omb.Preset], form: str) -> None:
    made, shape, wanted = OTHERS[form]
    result = preset.prepare(made, fallback="full").run(np.ones(shape, np.float32))[0]
    np.testing.assert_allclose(result, wanted, atol=1e-6)


def test_outputs_are_left_out_too() -> None:
    """ONNX Runtime refuses a BatchNormalization that names outputs "" which it would only have in training."""
    names = ["x", "s", "s", "s", "s"]
    node = models.node("BatchNormalization", names, ["y", "", ""])
    made = models.model(
        [node], [models.tensor("x", (1, 2, 2))], [models.tensor("y", None)], initializers={"s": np.ones(2, np.float32)}
    )
    prepared = omb.OrtCpuBackend.prepare(made)
    assert [str(c) for c in prepared.adaptations if "2 trailing outputs" in c.change]
    np.testing.assert_allclose(prepared.run(np.ones((1, 2, 2), np.float32))[0], np.ones((1, 2, 2)), rtol=1e-4)


def looping(outputs: list[str]) -> ModelProto:
    """Three steps: a state that doubles, and what it was after each."""
    nodes = [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Add", ["a", "a"], ["b"]),
        helper.make_node("Identity", ["b"], ["s"]),
    ]
    state = [models.tensor(name, (2,)) for name in "abs"]
    yes = [models.tensor(name, (), onnx.TensorProto.BOOL) for name in "cd"]
    inner = helper.make_graph(nodes, "body", [models.tensor("i", (), INT64), yes[0], state[0]], [yes[1], *state[1:]])
    node = models.node("Loop", ["n", "", "x"], outputs, body=inner)
    wanted = models.tensor(next(filter(None, outputs)), None)
    return models.model([node], [models.tensor("x", (2,))], [wanted], initializers={"n": np.array(3)})


@pytest.mark.parametrize(("outputs", "wanted"), [(["", "y"], [[2, 4], [4, 8], [8, 16]]), (["y", ""], [8, 16])])
def test_an_output_that_keeps_its_place_is_named(
    preset: type[omb.Preset], outputs: list[str], wanted: list[Any]
) -> None:
    """A Loop whose state nobody wants ends the process of ONNX Runtime."""
    prepared = preset.prepare(looping(outputs), fallback="full")
    np.testing.assert_array_equal(prepared.run(np.array([1, 2], np.float32))[0], wanted)
    assert "trailing_empties" in {change.pass_name for change in prepared.adaptations}


def test_a_part_of_a_split_that_nobody_wants(preset: type[omb.Preset]) -> None:
    node = models.node("Split", ["x"], ["", "y"], num_outputs=2)
    made = models.model([node], [models.tensor("x", (4,))], [models.tensor("y", None)])
    assert preset.prepare(made).run(np.arange(4, dtype=np.float32))[0].tolist() == [2, 3]


def test_what_must_stay_stays(preset: type[omb.Preset]) -> None:
    """An input between others, the two that a Loop counts, and a model without any of it: untouched."""
    clip = models.model(
        [models.node("Clip", ["x", "", "high"], ["y"])],
        [models.tensor("x", (3,))],
        [models.tensor("y", None)],
        initializers={"high": np.array(2, np.float32)},
    )
    prepared = preset.prepare(clip)
    assert prepared.run(np.array([1, 2, 3], np.float32))[0].tolist() == [1, 2, 2]
    assert not [c for c in prepared.adaptations if c.pass_name == "trailing_empties"]


def test_a_loop_without_a_condition_keeps_its_place() -> None:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["i"], ["s"])],
        "body",
        [models.tensor("i", (), INT64), models.tensor("c", (), onnx.TensorProto.BOOL)],
        [models.tensor("d", (), onnx.TensorProto.BOOL), models.tensor("s", (), INT64)],
    )
    made = models.model(
        [models.node("Loop", ["n", ""], ["y"], body=inner)],
        [models.tensor("n", (), INT64)],
        [models.tensor("y", None, INT64)],
    )
    prepared = omb.OrtCpuBackend.prepare(made)
    assert prepared.run(np.array(3))[0].tolist() == [0, 1, 2]
    assert not prepared.adaptations


BARE = """
import sys, numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
session.run(None, {i.name: numpy.ones(i.shape, numpy.float32) for i in session.get_inputs()})
"""


@pytest.mark.parametrize("made", [LAYER_NORMS["in the graph"], LAYER_NORMS["a call that is short"], OTHERS["DFT"][0]])
def test_without_adapt_it_is_refused_where_the_engine_dies(
    ort_cpu: type[omb.Preset], made: ModelProto, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    done = subprocess.run([sys.executable, "-c", BARE, str(path)], capture_output=True, check=False)
    assert done.returncode < 0, "ONNX Runtime has been mended: engines/ort/deadly.py can go"
    with pytest.raises(omb.UnsupportedModelError, match='names its last input ""'):
        ort_cpu.prepare(path, adapt=False)


def test_without_adapt_other_models_go_as_they_are(ort_cpu: type[omb.Preset]) -> None:
    prepared = ort_cpu.prepare(OTHERS["Clip"][0], adapt=False)
    assert not prepared.adaptations
