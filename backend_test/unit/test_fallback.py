# SPDX-License-Identifier: Apache-2.0
"""What may run on the CPU EP, and how that is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models

OPENVINO = "OpenVINOExecutionProvider"
#: Of determinant 5, and larger than what is written out where an engine lacks Det.
SQUARE = np.float32([[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def mixed() -> ModelProto:
    """Relu, then Det, which the OpenVINO EP lacks."""
    return models.model(
        [models.node("Relu", ["x"], ["r"]), models.node("Det", ["r"], ["y"])],
        [models.tensor("x", [4, 4])],
        [models.tensor("y", [])],
    )


def alone() -> ModelProto:
    """Det only."""
    return models.one_node("Det", [models.tensor("x", [4, 4])], [models.tensor("y", [])])


def strings() -> ModelProto:
    """A Relu beside a string operator."""
    text = models.tensor("s", ["N"], models.STRING)
    return models.model(
        [models.node("Relu", ["x"], ["y"]), models.node("StringConcat", ["s", "s"], ["t"])],
        [models.tensor("x", [4, 4]), text],
        [models.tensor("y", [4, 4]), models.tensor("t", ["N"], models.STRING)],
    )


def test_partial_lets_them_run_on_the_cpu_and_one_warning_names_them(openvino_ep: type[omb.Preset]) -> None:
    with pytest.warns(omb.FallbackWarning) as caught:
        rep = openvino_ep.prepare(mixed())
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "1 of 2 nodes run on CPUExecutionProvider" in text
    assert "Det 'the_Det'" in text
    assert "Relu" not in text
    assert caught[0].filename == __file__
    assert {n.op_type: n.provider for n in rep.placement()} == {"Relu": OPENVINO, "Det": "CPUExecutionProvider"}
    assert float(rep.run(SQUARE)[0]) == pytest.approx(5)


def test_partial_refuses_a_model_none_of_whose_nodes_runs_there(openvino_ep: type[omb.Preset]) -> None:
    with pytest.raises(
        omb.UnsupportedModelError, match=r"no node of the model runs on OpenVINO.*Det.*fallback='full'"
    ) as e:
        openvino_ep.prepare(alone())
    assert e.value.operators == ("Det",)
    assert "the_Det" in e.value.reasons[0]
    assert openvino_ep.is_compatible(alone()) is False
    assert "the_Det" in openvino_ep.compatibility(alone()).reasons[0]


def test_none_refuses_a_single_node_elsewhere_and_names_it(openvino_ep: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match=r"Det 'the_Det'.*fallback='none' refuses") as e:
        openvino_ep.prepare(mixed(), fallback="none")
    assert e.value.operators == ("Det",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        openvino_ep.prepare(models.relu(), fallback="none")


def test_full_runs_anything_with_the_warning(openvino_ep: type[omb.Preset]) -> None:
    for made in (mixed(), alone()):
        with pytest.warns(omb.FallbackWarning, match="Det 'the_Det'"):
            rep = openvino_ep.prepare(made, fallback="full")
        assert float(rep.run(SQUARE)[0]) == pytest.approx(5)


def test_a_string_operator_stays_on_the_cpu(openvino_ep: type[omb.Preset]) -> None:
    with pytest.warns(omb.FallbackWarning, match="StringConcat 'the_StringConcat'"):
        rep = openvino_ep.prepare(strings())
    result = rep.run([-SQUARE, np.array(["a", "b"])])
    np.testing.assert_array_equal(result["y"], np.zeros((4, 4)))
    assert result["t"].tolist() == ["aa", "bb"]


def test_folded_nodes_do_not_count(openvino_ep: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Add", ["w", "w"], ["y"])], [], [models.tensor("y", [2])], initializers={"w": np.float32([1, 2])}
    )
    for fallback in ("partial", "none", "full"):
        rep = openvino_ep.prepare(made, fallback=fallback)
        np.testing.assert_array_equal(rep.run([])[0], [2, 4])


def test_without_fallback_there_is_no_warning(preset: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preset.prepare(models.linear()).run(np.float32([[1, 2, 3]]))


@pytest.mark.parametrize("fallback", ["partial", "none", "full"])
def test_it_changes_nothing_where_the_cpu_is_asked_for(engine: type[omb.Preset], fallback: str) -> None:
    made = models.linear() if engine.name == "Openvino" else mixed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rep = engine.prepare(made, fallback=fallback)
    assert {n.provider for n in rep.placement()} == {rep.provider}


def test_compatibility_tells_the_placement_without_warning(openvino_ep: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = openvino_ep.compatibility(mixed())
    assert answer.ok
    assert {n.op_type: n.provider for n in answer.placement}["Det"] == "CPUExecutionProvider"


def test_openvino_without_onnx_runtime_refuses_what_it_lacks_and_names_it(openvino: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Relu", ["x"], ["r"]), models.node("Det", ["r"], ["y"])],
        [models.tensor("x", [4, 4])],
        [models.tensor("y", [])],
    )
    for fallback in ("partial", "none", "full"):
        with pytest.raises(omb.UnsupportedModelError, match="it lacks Det") as e:
            openvino.prepare(made, fallback=fallback)
        assert e.value.operators == ("Det",)


def test_every_node_of_a_model_is_placed_once(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(models.linear(16, 16))
    assert {n.provider for n in rep.placement()} == {rep.provider}
    placed = sorted(n.op_type for n in rep.placement())
    assert placed in (["Add", "MatMul"], ["Gemm"]), placed  # ONNX Runtime makes one node of the two


def _quantized_product(scale: int) -> ModelProto:
    """A QLinearMatMul whose scales have a type, beside what OpenVINO takes."""
    scales = [models.tensor(f"{name}_scale", [1], scale) for name in "aby"]
    zeros = [models.tensor(f"{name}_zero", [1], TensorProto.INT8) for name in "aby"]
    matrices = [models.tensor("a", [2, 4], TensorProto.INT8), models.tensor("b", [4, 3], TensorProto.INT8)]
    read = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    nodes = [
        models.node("QLinearMatMul", read, ["y"], name="product"),
        models.node("Exp", ["x"], ["e"]),
        models.node("Relu", ["e"], ["z"]),
    ]
    inputs = [*matrices, *scales, *zeros, models.tensor("x", [2, 2])]
    outputs = [models.tensor("y", [2, 3], TensorProto.INT8), models.tensor("z", [2, 2])]
    return models.model(nodes, inputs, outputs, opsets={"": 21})


def test_nodes_that_onnxruntime_does_not_list(openvino_ep: type[omb.Preset]) -> None:
    """It gives a QLinearMatMul with scales of float16 to the CPU provider once its list is made."""
    model = _quantized_product(TensorProto.FLOAT16)
    with pytest.raises(omb.UnsupportedModelError, match="CPUExecutionProvider"):
        openvino_ep.prepare(model, fallback="none")
    with pytest.warns(omb.FallbackWarning, match="QLinearMatMul"):
        prepared = openvino_ep.prepare(model)
    assert [node.provider for node in prepared.placement() if node.op_type == "QLinearMatMul"] == [
        "CPUExecutionProvider"
    ]
