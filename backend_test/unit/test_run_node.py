# SPDX-License-Identifier: Apache-2.0
"""One operator, without a model around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_node

import onnx_multi_backend as omb
from onnx_multi_backend.models.tensors import numpy_dtype

A = np.float32([[1, -2], [3, -4]])
B = np.float32([[10, 20], [30, 40]])


@pytest.mark.parametrize(
    "inputs", [[A, B], (A, B), {"a": A, "b": B}, {"b": B, "a": A}], ids=["list", "tuple", "dict", "other order"]
)
def test_the_three_input_forms(preset: type[omb.Preset], inputs: object) -> None:
    result = preset.run_node(make_node("Sub", ["a", "b"], ["y"]), inputs)
    np.testing.assert_array_equal(result["y"], A - B)
    np.testing.assert_array_equal(result[0], A - B)


def test_a_single_input_alone(preset: type[omb.Preset]) -> None:
    np.testing.assert_array_equal(preset.run_node(make_node("Relu", ["x"], ["y"]), A)[0], np.maximum(A, 0))


def test_one_value_read_twice(engine: type[omb.Preset]) -> None:
    node = make_node("Sub", ["x", "x"], ["y"])
    np.testing.assert_array_equal(engine.run_node(node, [A])[0], np.zeros_like(A))
    np.testing.assert_array_equal(engine.run_node(node, {"x": A})[0], np.zeros_like(A))


def test_outputs_info_gives_the_types(engine: type[omb.Preset]) -> None:
    node = make_node("Relu", ["x"], ["y"])
    for info in ([(np.float32, (2, 2))], [(np.dtype(np.float32), A.shape)], [("float32", [2, 2])]):
        np.testing.assert_array_equal(engine.run_node(node, [A], outputs_info=info)[0], np.maximum(A, 0))
    np.testing.assert_array_equal(engine.run_node(node, [A], "CPU", [(np.float32, (2, 2))])[0], np.maximum(A, 0))


def test_a_wrong_outputs_info_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="outputs_info describes 2 outputs; Relu has 1"):
        engine.run_node(make_node("Relu", ["x"], ["y"]), [A], outputs_info=[(np.float32, (2, 2))] * 2)
    with pytest.raises(omb.InvalidModelError):
        engine.run_node(make_node("Relu", ["x"], ["y"]), [A], outputs_info=[(np.int64, (2, 2))])


@pytest.mark.parametrize(
    "info",
    [
        (np.float32, None),
        (TensorProto.FLOAT, (2, 2)),
        (np.int64(TensorProto.FLOAT), np.array([2, 2])),
        ("float32", ("N", None)),
        (TensorProto.FLOAT, None),
    ],
)
def test_outputs_info_as_loose_as_the_protocol_has_it(preset: type[omb.Preset], info: Any) -> None:
    node = make_node("Relu", ["x"], ["y"])
    np.testing.assert_array_equal(preset.run_node(node, [A], "CPU", [info])[0], np.maximum(A, 0))


@pytest.mark.parametrize(
    "info",
    [
        5,
        "ab",
        {"y": (np.float32, (2, 2))},
        [5],
        ["ab"],
        [(np.float32, (2, 2), 1)],
        [("nope", (2, 2))],
        [(None, (2, 2))],
        [(object(), (2, 2))],
        [(99, (2, 2))],
        [(0, (2, 2))],
        [(True, (2, 2))],
        [(np.float32, "22")],
        [(np.float32, 4)],
        [(np.float32, (2.0, 2))],
        [(np.float32, (True, 2))],
        [(np.float32, (2**70, 2))],
        [(np.float32, np.array(4))],
    ],
)
def test_another_form_of_outputs_info_is_refused(engine: type[omb.Preset], info: Any) -> None:
    node = make_node("Relu", ["x"], ["y"])
    with pytest.raises(omb.InputError, match=r"outputs_info has a pair \(dtype, shape\) for each output.* was given"):
        engine.run_node(node, [A], outputs_info=info)


@pytest.mark.parametrize("version", ["13", 13.0, True, [13]])
def test_an_opset_is_a_whole_number(engine: type[omb.Preset], version: Any) -> None:
    with pytest.raises(omb.OptionTypeError, match="opset_version is a whole number, or None .* was given"):
        engine.run_node(make_node("Relu", ["x"], ["y"]), [A], opset_version=version)


@pytest.mark.parametrize("version", [0, -1, 2**31, 2**70])
def test_an_opset_is_within_what_onnx_counts(engine: type[omb.Preset], version: int) -> None:
    with pytest.raises(omb.OptionError, match=f"opset_version is between 1 and 2147483647; {version} was given"):
        engine.run_node(make_node("Relu", ["x"], ["y"]), [A], opset_version=version)


@pytest.mark.parametrize("node", [5, None, b"", onnx.ModelProto()], ids=lambda node: type(node).__name__)
def test_what_is_no_node_is_refused(engine: type[omb.Preset], node: Any) -> None:
    words = f"A node is an onnx.NodeProto; {type(node).__name__} was given.*run_model takes a whole model"
    with pytest.raises(omb.InvalidModelError, match=words):
        engine.run_node(node, [A])


def test_the_opset_decides_what_an_operator_means(engine: type[omb.Preset]) -> None:
    node = make_node("Clip", ["x"], ["y"], min=-3.0, max=2.0)  # attributes up to opset 6, inputs since 11
    np.testing.assert_array_equal(engine.run_node(node, [A], opset_version=6)[0], np.clip(A, -3, 2))
    for version in (11, None):
        with pytest.raises(omb.InvalidModelError, match="min|max"):
            engine.run_node(node, [A], opset_version=version)


def test_softmax_changed_its_meaning_with_opset_13(ort_cpu: type[omb.Preset]) -> None:
    x = np.float32([[[1, 2], [3, 4]]])
    node = make_node("Softmax", ["x"], ["y"])
    for version, total in ((11, 1), (13, 2), (None, 2)):  # over all but the first axis; over the last axis
        assert ort_cpu.run_node(node, [x], opset_version=version)[0].sum() == pytest.approx(total, abs=1e-5)


def test_an_opset_that_lacks_the_operator_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.OnnxMultiBackendError, match="Gelu"):
        engine.run_node(make_node("Gelu", ["x"], ["y"]), [A], opset_version=13)


def test_an_opset_from_the_future_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="opset 999"):
        engine.run_node(make_node("Relu", ["x"], ["y"]), [A], opset_version=999)


def test_optional_inputs_left_out_or_none(engine: type[omb.Preset]) -> None:
    full = make_node("Clip", ["x", "low", "high"], ["y"])
    np.testing.assert_array_equal(engine.run_node(full, [A, np.float32(-3), np.float32(2)])[0], np.clip(A, -3, 2))
    no_low = make_node("Clip", ["x", "", "high"], ["y"])
    np.testing.assert_array_equal(engine.run_node(no_low, [A, np.float32(2)])[0], np.minimum(A, 2))
    np.testing.assert_array_equal(engine.run_node(no_low, [A, None, np.float32(2)])[0], np.minimum(A, 2))
    np.testing.assert_array_equal(engine.run_node(no_low, {"x": A, "high": np.float32(2)})[0], np.minimum(A, 2))
    np.testing.assert_array_equal(engine.run_node(make_node("Clip", ["x"], ["y"]), [A])[0], A)


def test_none_for_a_named_optional_input_leaves_it_out(engine: type[omb.Preset]) -> None:
    node = make_node("Clip", ["x", "low", "high"], ["y"])
    np.testing.assert_array_equal(engine.run_node(node, [A, None, np.float32(2)])[0], np.minimum(A, 2))
    np.testing.assert_array_equal(
        engine.run_node(node, {"x": A, "low": None, "high": np.float32(2)})[0], np.minimum(A, 2)
    )


def test_several_outputs_and_one_left_out(engine: type[omb.Preset]) -> None:
    k = np.array([1], np.int64)
    result = engine.run_node(make_node("TopK", ["x", "k"], ["values", "indices"]), [B, k])
    assert result["values"].tolist() == [[20], [40]]
    assert result["indices"].tolist() == [[1], [1]]
    ones = [np.ones(shape, np.float32) for shape in ((2, 1, 1), (1, 4, 1), (1, 4, 1))]
    only = engine.run_node(make_node("LSTM", ["x", "w", "r"], ["", "last"], hidden_size=1), ones)
    assert [len(only), only["last"].shape] == [1, (1, 1, 1)]


def test_attributes_and_a_subgraph(engine: type[omb.Preset]) -> None:
    def branch(name: str, value: float) -> onnx.GraphProto:
        constant = make_node("Constant", [], [name], value_float=value)
        return onnx.helper.make_graph([constant], name, [], [onnx.helper.make_tensor_value_info(name, 1, [])])

    node = make_node("If", ["c"], ["y"], then_branch=branch("yes", 1.0), else_branch=branch("no", 2.0))
    assert float(engine.run_node(node, [np.array(False)])[0]) == 2


def test_layouts_scalars_and_byte_orders(engine: type[omb.Preset]) -> None:
    node = make_node("Sub", ["a", "b"], ["y"])
    np.testing.assert_array_equal(engine.run_node(node, [np.asfortranarray(A), B.astype(">f4")])[0], A - B)
    np.testing.assert_array_equal(engine.run_node(node, [A, np.float32(1)])[0], A - 1)


def test_strings(ort_cpu: type[omb.Preset]) -> None:
    node = make_node("StringConcat", ["a", "b"], ["y"])
    for array in (np.array(["x", "y"], object), np.array(["x", "y"])):
        assert ort_cpu.run_node(node, [array, array])[0].tolist() == ["xx", "yy"]


def test_bfloat16(engine: type[omb.Preset]) -> None:
    bfloat16 = numpy_dtype(TensorProto.BFLOAT16)
    x = np.array([1.5, -2], bfloat16)
    result = engine.run_node(make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT), [x])[0]
    assert (result.dtype, result.tolist()) == (np.float32, [1.5, -2])
    back = engine.run_node(make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16), [result])[0]
    assert (back.dtype, back.astype(np.float32).tolist()) == (bfloat16, [1.5, -2])


def test_a_sequence(ort_cpu: type[omb.Preset]) -> None:
    node = make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    np.testing.assert_array_equal(ort_cpu.run_node(node, {"s": [A, B]})[0], np.concatenate([A, B]))
    np.testing.assert_array_equal(ort_cpu.run_node(node, [[A, B]])[0], np.concatenate([A, B]))
    made = ort_cpu.run_node(make_node("SequenceConstruct", ["a", "b"], ["s"]), [A, B])[0]
    np.testing.assert_array_equal(made[1], B)
    with pytest.raises(omb.InputError, match="empty sequence"):
        ort_cpu.run_node(node, {"s": []})


def test_an_operator_of_ai_onnx_ml(ort_cpu: type[omb.Preset]) -> None:
    node = make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.0)
    np.testing.assert_array_equal(ort_cpu.run_node(node, [A])[0], A > 0)
    np.testing.assert_array_equal(ort_cpu.run_node(node, [A], opset_version=1)[0], A > 0)


def test_an_operator_of_onnx_runtimes_own_domain(ort_cpu: type[omb.Preset]) -> None:
    node = make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")
    result = ort_cpu.run_node(node, [A], outputs_info=[(np.float32, A.shape)])[0]
    np.testing.assert_allclose(result, 0.5 * A * (1 + np.tanh(0.7978845608 * (A + 0.044715 * A**3))), atol=1e-4)
    np.testing.assert_array_equal(ort_cpu.run_node(node, [A])[0], result)  # ONNX Runtime knows the output's type


def test_wrong_inputs_are_refused(engine: type[omb.Preset]) -> None:
    node = make_node("Sub", ["a", "b"], ["y"])
    for inputs in ([A], [A, B, B], A):
        with pytest.raises(omb.InputError, match="Sub has the inputs a, b; [13] values given"):
            engine.run_node(node, inputs)
    with pytest.raises(omb.InputError, match="Sub: input 'b' missing"):
        engine.run_node(node, {"a": A})
    with pytest.raises(omb.InvalidModelError, match="Sub"):
        engine.run_node(node, [A, B.astype(np.int64)])
    with pytest.raises(omb.InputError, match="no input 'c'"):
        engine.run_node(node, {"a": A, "b": B, "c": B})


def test_a_node_that_is_none_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.OnnxMultiBackendError, match="Subb"):
        engine.run_node(make_node("Subb", ["a", "b"], ["y"]), [A, B])
    with pytest.raises(omb.InvalidModelError, match="axis"):
        engine.run_node(make_node("Concat", ["a", "b"], ["y"]), [A, B])


def test_devices_and_options_are_held_to_as_in_prepare(engine: type[omb.Preset]) -> None:
    node = make_node("Relu", ["x"], ["y"])
    with pytest.raises(omb.DeviceError):
        engine.run_node(node, [A], "TPU")
    with pytest.raises(omb.OptionError, match="no option 'adopt'"):
        engine.run_node(node, [A], adopt=True)
    np.testing.assert_array_equal(engine.run_node(node, [A], "CPU", adapt=False)[0], np.maximum(A, 0))
