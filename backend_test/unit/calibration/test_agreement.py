# SPDX-License-Identifier: Apache-2.0
"""Portable models: what engines round differently may move a result by one step of the last quantization, and no more."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.calibration import QuantizedModel, agreement, quantize, speed, targets
from onnx_multi_backend.calibration.agreement import Agreement, Engines
from onnx_multi_backend.calibration.disagreements import difference, last_step, quantization_before
from onnx_multi_backend.calibration.speed import Ratio
from onnx_multi_backend.engines.ort.qdq import Layout


@pytest.fixture
def openvino() -> None:
    if not omb.availability()["Openvino"].usable:
        pytest.skip("OpenVINO is not installed")


def transformer(target: str = "portable") -> QuantizedModel:
    return quantize(
        nets.transformer(), nets.sequences(), target=target, min_cosine=0.9, require_speedup=False, progress=False
    )


def small(**options: Any) -> QuantizedModel:
    options.setdefault("require_speedup", False)
    return quantize(nets.convolutional(), nets.images(), progress=False, **options)


def apart(model: onnx.ModelProto) -> float:
    """The largest difference of ONNX Runtime and OpenVINO on the data that the model is from."""
    one, other = (preset.prepare(model) for preset in (omb.OrtCpuBackend, omb.OpenvinoBackend))
    step = last_step(model, "y")
    return max(difference(one.run(x)[0], other.run(x)[0], step) for x in nets.sequences())


@pytest.mark.usefixtures("openvino")
def test_first_or_last_layers_stay_float_until_engines_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where outputs of products are quantized too, engines do not agree on all layers of this model."""
    monkeypatch.setattr(targets, "_PORTABLE", Layout(narrow_weights=True))
    result = transformer()
    assert apart(result.model) <= 1
    report = result.report
    names = [layer.name for layer in report.layers]
    kept = [layer.name for layer in report.layers if layer.kept_float == "agreement"]
    assert 0 < len(kept) < len(names)
    assert kept in (names[: len(kept)], names[-len(kept) :])
    lines = str(report).splitlines()
    assert f"kept float so that engines agree: {', '.join(kept)}" in lines
    assert any(line.startswith(f"with {len(names)} layers in int8, results would differ by ") for line in lines)
    assert report.agreement is not None
    assert report.agreement.presets == ("OrtCpu", "Openvino")
    told = f"{report.agreement}, in steps of the last quantization"
    assert f"largest difference of engines: {told}" in lines
    page = report.to_html()
    assert f"Largest difference of engines: {told}" in page
    assert "float so that engines agree" in page
    assert json.loads(report.to_json())["agreement"]["steps"] == report.agreement.steps


def test_a_model_that_no_engines_agree_on_stays_float(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Agreement(4.0, ("OrtCpu", "Openvino"), "y")
    monkeypatch.setattr(Engines, "compare", lambda self, model, run: far)
    report = small().report
    assert not report.quantized
    assert report.reason == (
        "engines do not agree on any int8 model of it within one quantization step: 4 steps between OrtCpu and Openvino"
    )
    assert report.agreement == far


def test_layers_that_engines_agree_on_must_be_faster_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of speed is told together with its cause."""

    def compare(self: Engines, model: onnx.ModelProto, run: Any) -> Agreement:
        count = sum(node.op_type in ("Conv", "MatMul") for node in quantized(model))
        return Agreement(float(count), ("OrtCpu", "Openvino"), "y")

    monkeypatch.setattr(Engines, "compare", compare)
    monkeypatch.setattr(speed, "compare", lambda one, other: Ratio(1.02, 1.02, 1.02, 1.02, 1.0))
    result = small(require_speedup=True)
    assert result.model == nets.convolutional()
    assert result.report.reason == (
        "int8 is not faster on this machine: 1.02 times the float model's time on OrtCpu, with the 1 of 5 layers in int8 that engines agree on"
    )


def quantized(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    return [node for node in model.graph.node if makers.get(node.input[0]) == "DequantizeLinear"]


def test_a_preset_that_refuses_the_model_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        @staticmethod
        def prepare(*args: Any, **options: Any) -> omb.PreparedModel:
            raise omb.UnsupportedModelError("no such kernel")

    usable = omb.availability()["OrtCpu"]
    monkeypatch.setattr(agreement, "availability", lambda: dict.fromkeys(agreement._PRESETS, usable))
    monkeypatch.setattr(agreement, "get_preset", lambda name: Refusing)
    report = small().report
    assert report.quantized
    assert report.agreement is None
    for name in ("Openvino", "OrtOpenvino"):
        told = f"{name} does not run a model that OrtCpu runs, and was not compared: no such kernel"
        assert report.notes.count(told) == 1


@pytest.mark.usefixtures("openvino")
def test_labels_are_not_counted_in_steps() -> None:
    """Where two numbers are all but equal, their order says nothing of how far engines are apart."""
    labelled = nets.transformer()
    labelled.graph.node.append(models.node("ArgMax", ["y"], ["label"], axis=-1))
    del labelled.graph.output[:]
    labelled.graph.output.append(onnx.helper.make_tensor_value_info("label", onnx.TensorProto.INT64, None))
    report = quantize(labelled, nets.sequences(), min_cosine=0.9, require_speedup=False, progress=False).report
    assert all(not layer.kept_float for layer in report.layers)
    assert report.agreement is None
    told = "whether engines agree was not measured: no output in floating point has a quantization before it"
    assert report.notes.count(told) == 1


def test_without_another_engine_the_report_says_that_nothing_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "_PRESETS", ("OrtCpu",))
    assert "whether engines agree was not measured: there is no other" in str(small().report)


def test_the_last_quantization_is_not_that_of_a_bias_that_is_shared() -> None:
    """A layer in float reads the dequantized bias of one in int8: its scale says nothing of results."""
    scales = {"wide": np.float32(0.5), "fine": np.float32(0.001)}
    nodes = [
        models.node("QuantizeLinear", ["x", "wide", "zero"], ["q"]),
        models.node("DequantizeLinear", ["q", "wide", "zero"], ["d"]),
        models.node("DequantizeLinear", ["b", "fine"], ["bias"]),
        models.node("Add", ["d", "bias"], ["one"]),
        models.node("Mul", ["one", "one"], ["square"]),
        models.node("Add", ["square", "bias"], ["y"]),
        models.node("Neg", ["bias"], ["z"]),
    ]
    made = models.model(
        nodes,
        [models.tensor("x")],
        [models.tensor("y"), models.tensor("z", [3])],
        initializers={**scales, "zero": np.uint8(128), "b": np.arange(3, dtype=np.int32)},
    )
    assert quantization_before(made, "y") == 0.5
    assert quantization_before(made, "z") is None
