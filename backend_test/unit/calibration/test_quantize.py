# SPDX-License-Identifier: Apache-2.0
"""Quantized models: as accurate as asked, no slower than they came, and a report that says what was done."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.calibration import QuantizedModel, check_int8, quantize, speed
from onnx_multi_backend.calibration.checking import Int8Check, SettingCheck
from onnx_multi_backend.calibration.disagreements import NodeDisagreement
from onnx_multi_backend.calibration.speed import Ratio


def as_fast(ratio: float) -> Any:
    """Stands for a measurement: tests of what follows from it do not depend on the machine."""
    return lambda one, other: Ratio(ratio, ratio, ratio, ratio, 1.0)


@functools.cache
def usual() -> QuantizedModel:
    return made()


def made(target: str = "portable", **options: Any) -> QuantizedModel:
    options.setdefault("require_speedup", False)
    return quantize(nets.convolutional(), nets.images(), target=target, progress=False, **options)


def weights(model: onnx.ModelProto) -> list[np.ndarray]:
    arrays = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8]
    return [a for a in arrays if a.ndim > 1]


@pytest.mark.parametrize("target", ["portable", "ort", "tensorrt", "openvino"])
def test_every_target_gets_a_valid_model_near_the_float_model(target: str, preset: type[omb.Preset]) -> None:
    if target == "openvino" and not omb.availability()["Openvino"].usable:
        pytest.skip("OpenVINO is not installed")
    result = made(target)
    onnx.checker.check_model(result.model, full_check=True)
    assert result.report.quantized
    assert result.report.accuracy.cosine > 0.99
    assert (result.report.speed is None) == (target == "tensorrt")
    x = next(nets.images(seed=7))
    right = omb.OrtCpuBackend.run_model(nets.convolutional(), x)[0]
    found = preset.prepare(result).run(x)[0]  # as it is
    assert float(right.ravel() @ found.ravel() / np.linalg.norm(right) / np.linalg.norm(found)) > 0.99


def test_portable_weights_have_seven_bits_and_channels_their_own_scale() -> None:
    for array in weights(usual().model):
        assert np.abs(array).max() <= 64
    scales = [onnx.numpy_helper.to_array(t).size for t in usual().model.graph.initializer if t.name.endswith("_scale")]
    assert scales.count(32) >= 4


def test_a_model_of_an_old_opset_is_raised_first() -> None:
    result = quantize(nets.convolutional(opset=11), nets.images(), require_speedup=False, progress=False)
    onnx.checker.check_model(result.model, full_check=True)
    assert result.report.quantized


def test_what_is_excluded_stays_float() -> None:
    result = made(exclude=["conv0", "MatMul"])
    by_name = {layer.name: layer for layer in result.report.layers}
    assert {name for name, layer in by_name.items() if layer.kept_float == "excluded"} == {"conv0", "head"}
    conv0 = next(node for node in result.model.graph.node if node.name == "conv0")
    makers = {name: node.op_type for node in result.model.graph.node for name in node.output}
    assert makers.get(conv0.input[0]) != "DequantizeLinear"
    with pytest.raises(omb.OptionError, match="'conv00', and .* no such node or operator; is it 'conv0'"):
        made(exclude=["conv00"])


def sensitive() -> onnx.ModelProto:
    """One branch of it needs all of float's digits: channels of sizes 1 and 1e5, and their small difference is what comes out."""
    net = nets.convolutional()
    rng = np.random.default_rng(3)
    near = rng.normal(size=(4, 3, 1, 1)).astype(np.float32)
    extra = {"big": np.concatenate([near, near + 1e-3]) * np.float32(1e3), "pair": np.zeros((1, 8, 1, 1), np.float32)}
    extra["pair"][0, 0], extra["pair"][0, 4] = 1, -1
    net.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in extra.items())
    net.graph.node.extend(
        [
            models.node("Conv", ["x", "big"], ["large"], name="large"),
            models.node("Conv", ["large", "pair"], ["z"], name="difference"),
        ]
    )
    net.graph.output.append(models.tensor("z", ["N", 1, "H", "W"]))
    return net


def test_the_most_sensitive_layers_stay_float_until_the_limit_holds() -> None:
    result = quantize(sensitive(), nets.images(), require_speedup=False, progress=False)
    kept = {layer.name for layer in result.report.layers if layer.kept_float == "accuracy"}
    assert kept
    assert kept <= {"large", "difference"}
    assert result.report.accuracy.cosine >= 0.99
    loose = quantize(sensitive(), nets.images(), require_speedup=False, min_cosine=None, progress=False)
    assert not any(layer.kept_float for layer in loose.report.layers)
    assert loose.report.accuracy.cosine < 0.99
    told = next(line for line in str(result.report).splitlines() if line.startswith("kept float for accuracy: "))
    assert set(told.partition(": ")[2].split(", ")) == kept


def test_no_model_leaves_slower_than_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "compare", as_fast(1.08))
    result = made(require_speedup=True)
    assert not result.report.quantized
    assert result.report.reason == "int8 is not faster on this machine: 1.08 times the float model's time on OrtCpu"
    assert result.model == nets.convolutional()
    assert all(not node.op_type.startswith("Quantize") for node in result.model.graph.node)


def test_kinds_of_layers_that_int8_makes_slower_stay_float(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first comparison is of the model without its convolutions in int8, the second without its MatMul, the last with float."""
    answers = iter([1.5, 0.9, 0.7])
    monkeypatch.setattr(speed, "compare", lambda one, other: as_fast(next(answers))(one, other))
    result = made(require_speedup=True)
    assert [layer.name for layer in result.report.layers if layer.kept_float == "speed"] == ["head"]
    assert result.report.speed is not None
    assert result.report.speed.median == 0.7


def accuracy(outputs: Any, labels: np.ndarray) -> np.ndarray:
    return (outputs[0].argmax(axis=1) == labels).astype(float)


def labelled(count: int = 40) -> list[tuple[np.ndarray, np.ndarray]]:
    net = omb.OrtCpuBackend.prepare(nets.convolutional())
    batches = [np.concatenate(list(nets.images(8, seed=i))) for i in range(count)]
    return [(x, net.run(x)[0].argmax(axis=1)) for x in batches]


def test_a_metric_has_a_bound_on_its_drop() -> None:
    result = quantize(
        nets.convolutional(),
        labelled(),
        metric=accuracy,
        max_drop=0.3,
        require_speedup=False,
        progress=False,
    )
    drop = result.report.accuracy.metric
    assert drop is not None
    assert drop.samples == 8 * 8  # another batch in five, which had no part in the choice
    assert drop.float_figure == 1
    assert drop.drop <= drop.bound <= 0.3
    assert "if the 64 samples are independent" in str(result.report)


def test_a_drop_that_so_few_samples_cannot_show_leaves_the_model_float() -> None:
    result = quantize(nets.convolutional(), labelled(5), metric=accuracy, max_drop=0.001, progress=False)
    assert not result.report.quantized
    assert "a drop of at most 0.001" in result.report.reason


def test_one_batch_is_measured_on_itself_and_the_report_says_so() -> None:
    result = quantize(nets.convolutional(), nets.images(1), require_speedup=False, progress=False)
    assert not result.report.independent
    assert "too few batches to hold some back" in str(result.report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "gpu"}, "target is one of 'openvino', 'ort'"),
        ({"method": "guess"}, "method is one of"),
        ({"max_drop": 0.1}, "pass metric too"),
        ({"metric": lambda outputs, labels: 3.0}, "outside of metric_range"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(omb.OptionError, match=message):
        made(**options)


def test_a_model_without_layers_stays_float() -> None:
    result = quantize(models.relu(), [np.ones((1, 3), np.float32)] * 5, progress=False)
    assert result.model == models.relu()
    assert "no layer of it can be quantized" in result.report.reason


def test_what_is_quantized_is_not_quantized_again() -> None:
    with pytest.raises(omb.AlreadyQuantizedError, match="float model"):
        quantize(usual(), nets.images())


def test_the_report_is_json_and_a_page(tmp_path: Path) -> None:
    report = usual().report
    told = json.loads(report.to_json())
    assert told["target"] == "portable"
    assert [layer["name"] for layer in told["layers"]] == ["conv0", "conv1", "conv2", "conv3", "head"]
    page = report.to_html()
    assert "<script" not in page
    for layer in report.layers:
        assert layer.name in page


def test_a_portable_model_agrees_on_every_engine_and_level() -> None:
    checked = check_int8(usual().model, nets.images(3))
    assert checked, str(checked)
    assert {"OrtCpu, no optimization", "OrtCpu, basic", "OrtCpu, extended", "OrtCpu"} <= {
        setting.setting for setting in checked.settings
    }


def test_a_layer_that_another_setting_computes_wrongly_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_multi_backend.calibration import checking

    def wrong(proto: onnx.ModelProto) -> omb.PreparedModel:
        changed = onnx.ModelProto()
        changed.CopyFrom(proto)
        for tensor in changed.graph.initializer:
            if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 4 and tensor.dims[1] == 3:  # of conv0
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) // 2, tensor.name))
        return omb.OrtCpuBackend.prepare(changed)

    monkeypatch.setattr(checking, "_settings", lambda: [("wrong", wrong)])
    (setting,) = check_int8(usual().model, nets.images(2)).settings
    assert not setting.agrees
    assert [node.node for node in setting.nodes] == ["conv0"]


def test_a_difference_without_a_layer_that_causes_it_says_what_to_do() -> None:
    edge, far, good = SettingCheck("OrtCpu, basic", 1.4), SettingCheck("Openvino", 40.0), SettingCheck("OrtCpu", 0.0)
    also = SettingCheck("OrtOpenvino", 30.0)
    lines = str(Int8Check((edge, far, good, also))).splitlines()
    assert lines[0] == "OrtCpu, basic: differs by 1.4 steps of the last quantization"
    assert lines[2] == "OrtCpu: agrees"
    assert lines[4].startswith("OrtCpu, basic: No layer differs")
    assert "at the edge of a step" in lines[4]
    assert "Nothing is to be done" in lines[4]
    assert lines[5].startswith("Openvino; OrtOpenvino: No layer differs")
    assert "Compare the accuracy" in lines[5]
    assert lines[5].endswith("or choose what agrees: OrtCpu.")
    assert len(lines) == 6
    refused = SettingCheck("Openvino", math.inf, "no")
    named = SettingCheck("Openvino", 3.0, nodes=(NodeDisagreement("conv0", "Conv", 3.0),))
    assert "by itself" not in str(Int8Check((refused, named)))


def test_an_option_that_onnx_runtime_fails_with_is_to_blame_not_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `session.x64quantprecision` does of a weight that two MatMuls share."""
    from onnx_multi_backend.calibration import checking

    def refuse(proto: onnx.ModelProto) -> omb.PreparedModel:
        words = "Attempt to replace the existing tensor"
        raise omb.UnsupportedModelError(f"OrtCpu cannot run it: {words}. Choose a preset.", reasons=[words])

    settings = [(name, refuse) for name in ("OrtCpu, session.x64quantprecision", "Openvino")]
    monkeypatch.setattr(checking, "_settings", lambda: settings)
    option, engine = check_int8(usual().model, nets.images(1)).settings
    assert option.refused == "ONNX Runtime fails with this option: Attempt to replace the existing tensor"
    assert engine.refused.endswith("Choose a preset.")


def test_a_float_model_cannot_be_checked() -> None:
    with pytest.raises(omb.UnsupportedModelError, match="no layer between Q/DQ nodes"):
        check_int8(nets.convolutional(), nets.images(1))
