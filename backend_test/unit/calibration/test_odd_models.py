# SPDX-License-Identifier: Apache-2.0
"""Models and data that quantizers stumble over: the result is right, or the refusal is clear."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.calibration import calibrate, check_int8, quantize, to_qdq
from onnx_multi_backend.calibration.accuracy import Accuracy, OutputError, is_near
from onnx_multi_backend.calibration.choosing import Limits
from onnx_multi_backend.calibration.disagreements import difference
from onnx_multi_backend.models import loading

RNG = np.random.default_rng(0)
W, C = RNG.normal(size=(8, 5)).astype(np.float32), RNG.normal(size=5).astype(np.float32)
DATA = [RNG.normal(size=(2, 8)).astype(np.float32) for _ in range(10)]


def gemm(bias: Any = C, **attributes: Any) -> onnx.ModelProto:
    return models.model(
        [models.node("Gemm", ["x", "w", "c"], ["y"], **attributes)],
        [models.tensor("x", ["N", 8])],
        [models.tensor("y", ["N", 5])],
        initializers={"w": W, "c": bias},
    )


def error(model: onnx.ModelProto, made: Any) -> float:
    """The noise of a quantized model by the signal."""
    right, found = (omb.OrtCpuBackend.run_model(m, DATA[0])[0] for m in (model, made))
    return float(np.square(right - found).sum() / np.square(right).sum())


@pytest.mark.parametrize(
    ("bias", "attributes"),
    [
        (C * 10, {"alpha": 0.01, "beta": 3.0}),
        (C * 10, {"beta": 0.0}),
        (RNG.normal(size=(2, 5)).astype(np.float32), {}),
        (np.float32(3), {"beta": 2.0}),
        (C, {}),
    ],
)
def test_a_gemm_keeps_its_bias(bias: Any, attributes: dict[str, Any]) -> None:
    model = gemm(bias, **attributes)
    result = quantize(model, DATA, require_speedup=False, progress=False)
    onnx.checker.check_model(result.model, full_check=True)
    assert error(model, result) < 0.01
    assert result.report.quantized == (np.ndim(bias) == 1 or attributes.get("beta") == 0)
    if result.report.quantized:
        made = to_qdq(model, calibrate(model, DATA))
        assert "QuantizeLinear" in {node.op_type for node in made.graph.node}
        assert error(model, made) < 0.01


def test_weights_in_large_files_and_behind_links_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_FEW", 0)  # every file is a large one, which engines map
    (tmp_path / "blobs").mkdir()
    onnx.save(gemm(), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").rename(tmp_path / "blobs" / "m")
    (tmp_path / "m.data").symlink_to(Path("blobs") / "m")
    path = tmp_path / "m.onnx"
    result = quantize(path, DATA, require_speedup=False, progress=False)
    assert error(gemm(), result) < 0.01
    assert error(gemm(), to_qdq(path, calibrate(path, DATA))) < 0.01
    onnx.save(result.model, tmp_path / "q.onnx", save_as_external_data=True, location="q.data", size_threshold=0)
    assert check_int8(tmp_path / "q.onnx", DATA[:2])


def test_a_result_of_another_size_is_not_near() -> None:
    assert not is_near(OutputError("y", 1.0, 3.5, 30.0), 0.99)  # a third of it
    assert is_near(OutputError("y", 0.995, 19.0, 0.1), 0.99)


def test_a_limit_says_how_much_noise_it_allows() -> None:
    """A model with a cosine above the limit and too much noise is not told to lack the cosine alone."""
    assert str(Limits(0.99, None)) == "a cosine of 0.99 and an SQNR of 13.9 dB"
    assert not Limits(0.99, None).hold(Accuracy((OutputError("y", 0.998, 13.8, 2.0),), None))
    assert Limits(0.99, None).hold(Accuracy((OutputError("y", 0.998, 14.0, 2.0),), None))
    assert str(Limits(-1, 0.1)) == "a cosine of -1 and a drop of at most 0.1"


def test_an_output_that_is_an_input_stays_what_it_is() -> None:
    model = gemm()
    model.graph.output.append(models.tensor("x", ["N", 8]))
    for made in (
        quantize(model, DATA, require_speedup=False, progress=False).model,
        to_qdq(model, calibrate(model, DATA)),
    ):
        onnx.checker.check_model(made, full_check=True)
        np.testing.assert_array_equal(omb.OrtCpuBackend.run_model(made, DATA[0])["x"], DATA[0])


#: What ONNX Runtime's writer appends to a tensor's name.
WRITTEN = ("_scale", "_zero_point", "_quantized", "_quantized_scale", "_quantized_zero_point", "_QuantizeLinear_Output")
WRITTEN += (
    "_QuantizeLinear_Input",
    "_DequantizeLinear_Output",
    "_DequantizeLinear_Output_1",
    "_QuantizeLinear_Output_1",
)


@pytest.mark.parametrize("target", ["portable", "ort", "tensorrt"])
@pytest.mark.parametrize("kind", ["input", "initializer", "computed", "in a branch"])
def test_tensors_called_as_the_writer_calls_its_own_stay_what_they_are(kind: str, target: str) -> None:
    others = {f"{tensor}{written}": np.float32(i) for i, (tensor, written) in enumerate(product("xwcy", WRITTEN))}
    numbers, nodes = [models.tensor(name, []) for name in others], [models.node("Gemm", ["x", "w", "c"], ["y"])]
    inputs, outputs = [models.tensor("x", ["N", 8])], [models.tensor("y", ["N", 5]), models.tensor("sum", [])]
    if kind == "in a branch":
        inner = [helper.make_node("Add", ["start", name], [f"{name}/plus"]) for name in others]
        inner += [helper.make_node("Neg", ["start"], [name]) for name in others]
        inner += [helper.make_node("Sum", [f"{name}/plus" for name in others], ["all"])]
        branch = helper.make_graph(
            sorted(inner, key=lambda n: ["Neg", "Add", "Sum"].index(n.op_type)), "b", [], [models.tensor("all", [])]
        )
        nodes.append(models.node("If", ["yes"], ["sum"], then_branch=branch, else_branch=branch))
        inputs += [models.tensor("start", []), models.tensor("yes", [], TensorProto.BOOL)]
        given = {"start": np.float32(2), "yes": np.bool_(True)}
    else:
        given = dict(others) if kind == "input" else {"start": np.float32(2)} if kind == "computed" else {}
        inputs += numbers if kind == "input" else [models.tensor(name, []) for name in given]
        if kind == "computed":
            nodes += [models.node("Neg", ["start"], [name], name=f"{name}/node") for name in others]
            outputs += numbers
        nodes.append(models.node("Sum", list(others), ["sum"]))
    constants = {"w": W, "c": C, **(others if kind == "initializer" else {})}
    model = models.model(nodes, inputs, outputs, initializers=constants)
    data = [{"x": x, **given} for x in DATA]
    result = quantize(model, data, target=target, require_speedup=False, progress=False)
    assert result.report.quantized
    for made in (result.model, to_qdq(model, calibrate(model, data))):
        onnx.checker.check_model(made, full_check=True)
        assert [i.name for i in made.graph.input] == [i.name for i in model.graph.input]
        assert [o.name for o in made.graph.output] == [o.name for o in model.graph.output]
        right, found = (omb.OrtCpuBackend.run_model(m, data[0]) for m in (model, made))
        assert np.square(right[0] - found[0]).sum() < 0.01 * np.square(right[0]).sum()
        for one, other in zip(right[1:], found[1:], strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_writers_names_are_its_own_where_they_are_free() -> None:
    made = to_qdq(gemm(), calibrate(gemm(), DATA))
    names = {tensor.name for tensor in made.graph.initializer}
    assert {"x_scale", "x_zero_point", "w_scale", "y_scale"} <= names
    assert not [name for node in made.graph.node for name in (node.name, *node.output) if "omb" in name]


def test_nodes_without_names_get_free_ones() -> None:
    nodes = [models.node("MatMul", ["x", "w"], ["a"], name="MatMul_0"), models.node("Relu", ["a"], ["r"], name="")]
    nodes.append(models.node("MatMul", ["r", "v"], ["y"], name=""))
    made = models.model(
        nodes,
        [models.tensor("x", ["N", 8])],
        [models.tensor("y", ["N", 5])],
        initializers={"w": W, "v": np.eye(5, dtype=np.float32)},
    )
    result = quantize(made, DATA, require_speedup=False, progress=False)
    names = [node.name for node in result.model.graph.node]
    assert len(set(names)) == len(names)
    assert result.report.quantized


def test_float16_with_a_table_is_refused_or_valid() -> None:
    kind = TensorProto.FLOAT16
    made = models.model(
        [models.node("MatMul", ["x", "w"], ["y"])],
        [models.tensor("x", ["N", 8], kind)],
        [models.tensor("y", ["N", 5], kind)],
        initializers={"w": W.astype(np.float16)},
    )
    table = calibrate(made, [d.astype(np.float16) for d in DATA])
    with pytest.raises(omb.UnsupportedModelError, match="Q/DQ nodes cannot be written into"):
        to_qdq(made, table)


def test_an_old_model_with_weights_among_its_inputs_is_valid_afterwards() -> None:
    made = nets.convolutional(opset=11)
    made.ir_version = 3
    for tensor in made.graph.initializer:
        made.graph.input.append(models.tensor(tensor.name, list(tensor.dims)))
    for result in (
        quantize(made, nets.images(), require_speedup=False, progress=False).model,
        to_qdq(made, calibrate(made, nets.images())),
    ):
        onnx.checker.check_model(result, full_check=True)


def test_what_the_converter_breaks_is_refused() -> None:
    def branch(op_type: str, **attributes: Any) -> onnx.GraphProto:
        node = helper.make_node(op_type, ["a"], ["out"], **attributes)
        return helper.make_graph([node], op_type, [], [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])

    nodes = [
        models.node("MatMul", ["x", "w"], ["m"]),
        models.node("Reshape", ["m", "shape"], ["a"]),
        models.node("If", ["c"], ["y"], then_branch=branch("Softmax"), else_branch=branch("Relu")),
    ]
    made = models.model(
        nodes,
        [models.tensor("x", [2, 8]), models.tensor("c", [], TensorProto.BOOL)],
        [models.tensor("y", None)],
        initializers={"w": W[:, :4], "shape": np.int64([2, 2, 2])},
        opsets={"": 11},
        ir_version=7,
    )
    data = [{"x": d, "c": np.bool_(True)} for d in DATA]
    with pytest.raises(omb.UnsupportedModelError, match="converter does not get there"):
        quantize(made, data, progress=False)


@pytest.mark.parametrize("place", [2, 4, 8])
def test_the_batch_that_is_not_finite_is_named_wherever_it_is(place: int) -> None:
    data = [d.copy() for d in DATA]
    data[place][0, 0] = np.nan
    with pytest.raises(omb.CalibrationDataError, match=f"Batch {place} of data makes tensor 'x'"):
        quantize(gemm(), data, progress=False)


def test_what_is_excluded_by_the_users_name_stays_float_where_nodes_were_merged() -> None:
    nodes = [models.node("MatMul", ["x", "w"], ["m"], name="mm"), models.node("Add", ["m", "c"], ["a"], name="add")]
    nodes += [models.node("Relu", ["a"], ["r"]), models.node("MatMul", ["r", "v"], ["y"], name="last")]
    made = models.model(
        nodes,
        [models.tensor("x", ["N", 8])],
        [models.tensor("y", ["N", 5])],
        initializers={"w": W, "c": C, "v": np.eye(5, dtype=np.float32)},
    )
    result = quantize(made, DATA, exclude=["mm"], require_speedup=False, progress=False)
    assert [layer.kept_float for layer in result.report.layers] == ["", "excluded"]


def test_outputs_that_are_no_numbers_prove_nothing() -> None:
    nodes = [models.node("MatMul", ["x", "w"], ["m"]), models.node("Cast", ["m"], ["y"], to=TensorProto.STRING)]
    made = models.model(
        nodes,
        [models.tensor("x", ["N", 8])],
        [models.tensor("y", ["N", 5], TensorProto.STRING)],
        initializers={"w": W},
    )
    result = quantize(made, DATA, progress=False)
    assert not result.report.quantized
    assert "nothing can be compared" in result.report.reason


def test_the_search_tries_models_with_few_int8_layers() -> None:
    """Only the last of many layers may be quantized: all others are said to cost everything."""
    net = nets.convolutional(channels=8, layers=9)
    alone = quantize(net, nets.images(), exclude=["Conv"], require_speedup=False, progress=False).report.accuracy.cosine
    every = quantize(net, nets.images(), min_cosine=None, require_speedup=False, progress=False).report.accuracy.cosine
    assert every < alone
    result = quantize(net, nets.images(), min_cosine=alone - 1e-9, require_speedup=False, progress=False)
    assert result.report.quantized


@pytest.mark.parametrize(
    ("right", "found", "apart"),
    [([1, -np.inf], [100, -np.inf], 99), ([1, np.nan], [1, 5], np.inf), ([1, np.nan], [1, np.nan], 0), ([], [], 0)],
)
def test_infinities_hide_no_difference(right: list[float], found: list[float], apart: float) -> None:
    assert difference(np.float32(right), np.float32(found), 1.0) == pytest.approx(apart, abs=0.01)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


def test_labels_may_be_anything() -> None:
    result = quantize(gemm(), [(d, Unpicklable()) for d in DATA], require_speedup=False, progress=False)
    assert result.report.quantized


def test_no_more_is_read_than_asked_for() -> None:
    read = []

    def endless() -> Any:
        while True:
            read.append(1)
            yield DATA[0]

    calibrate(gemm(), endless(), batches=2)
    assert len(read) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"metric": 3},
        {"exclude": "Conv"},
        {"exclude": [3]},
        {"min_cosine": "0.9"},
        {"min_cosine": 2},
        {"metric_range": (1, 0)},
        {"metric_range": None},
        {"batches": 0},
        {"batches": "3"},
        {"metric": lambda outputs, labels: "good"},
        {"metric": lambda outputs, labels: []},
    ],
)
def test_odd_options_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(omb.OptionError):
        quantize(gemm(), DATA, progress=False, **options)


def test_the_ends_of_float32_have_a_range(tmp_path: Path) -> None:
    for scale in (1e-40, 1e38):
        table = calibrate(models.relu(["N", 8]), [np.full((1, 8), scale, np.float32)], method="entropy")
        assert table["x"][1] == np.float32(scale)
        table.save(tmp_path / "t.cache")


def test_what_a_quantizer_did_not_think_of_leaves_the_model_float(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    def fail(self: Any) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(QDQQuantizer, "quantize_model", fail)
    result = quantize(gemm(), DATA, progress=False)
    assert not result.report.quantized
    assert "ONNX Runtime cannot write Q/DQ nodes around 'the_Gemm': IndexError" in str(result.report)
    with pytest.raises(omb.UnsupportedModelError, match="cannot write Q/DQ nodes"):
        to_qdq(gemm(), calibrate(gemm(), DATA))
