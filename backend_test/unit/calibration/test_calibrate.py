# SPDX-License-Identifier: Apache-2.0
"""Ranges of tensors: what each method finds, from data in every form, and what bad data is told."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.calibration import calibrate
from onnx_multi_backend.engines.ort.quantization import Histograms

METHODS = ("minmax", "entropy", "percentile", "distribution")


def shifted() -> onnx.ModelProto:
    """z = relu(x) - 5: every tensor is one-sided on positive data."""
    nodes = [models.node("Relu", ["x"], ["y"]), models.node("Sub", ["y", "five"], ["z"])]
    shape = ["N", 8]
    return models.model(
        nodes, [models.tensor("x", shape)], [models.tensor("z", shape)], initializers={"five": np.float32(5)}
    )


def test_the_ranges_are_those_of_the_values() -> None:
    data = [np.linspace(1, 3, 8, dtype=np.float32)[None] * scale for scale in (1.0, 0.5, 1.25)]
    table = calibrate(shifted(), data)
    assert table["x"] == (0.5, 3.75)
    assert table["y"] == (0.5, 3.75)
    assert table["z"] == (-4.5, -1.25)
    assert table.magnitudes["z"] == 4.5  # TensorRT is symmetric, and ONNX Runtime's own writer says -1.25


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stays_within_what_was_seen(method: str) -> None:
    net = nets.convolutional()
    seen = calibrate(net, nets.images())
    table = calibrate(net, nets.images(), method=method)
    assert set(table) == set(seen) >= {"x", "c0", "r0", "y"}
    for name, (low, high) in table.items():
        assert seen[name][0] <= low < high <= seen[name][1], name


def test_methods_that_cut_outliers_cut_one() -> None:
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(200, 8)).astype(np.float32) for _ in range(5)]
    data[3][0, 0] = 40
    model = models.relu(["N", 8])
    assert calibrate(model, data)["x"][1] == 40
    for method in ("entropy", "percentile", "distribution"):
        assert calibrate(model, data, method=method, percentile=99.9)["x"][1] < 20, method


def test_a_percentile_holds_as_many_values_as_it_says() -> None:
    values = np.random.default_rng(0).normal(size=(1, 100_000)).astype(np.float32)
    low, high = calibrate(models.relu(["N", "K"]), [values], method="percentile", percentile=99.0)["x"]
    assert np.percentile(values, 0.5) == pytest.approx(low, abs=0.03)
    assert np.percentile(values, 99.5) == pytest.approx(high, abs=0.03)


def test_a_constant_tensor_and_one_without_elements_are_no_trouble() -> None:
    nodes = [models.node("Mul", ["x", "zero"], ["y"]), models.node("Slice", ["x", "at", "at"], ["none"])]
    made = models.model(
        nodes,
        [models.tensor("x", ["N", 4])],
        [models.tensor("y", ["N", 4]), models.tensor("none", None)],
        initializers={"zero": np.float32(0), "at": np.int64([0])},
    )
    for method in METHODS:
        table = calibrate(made, [np.ones((2, 4), np.float32)], method=method)
        assert table["y"] == (0, 0)
        assert "none" not in table


def test_float16_tensors_have_ranges_too() -> None:
    kind = TensorProto.FLOAT16
    model = models.one_node("Relu", [models.tensor("x", ["N"], kind)], [models.tensor("y", ["N"], kind)])
    for method in METHODS:
        table = calibrate(model, [np.float16([-2, 1, 2])], method=method)
        assert -2 <= table["x"][0] < 0 < table["x"][1] <= 2, method


class Loader:
    """Batches as PyTorch's DataLoader gives them: inputs and labels in a list, tensors with ``__array__``."""

    class Tensor:
        def __init__(self, values: np.ndarray) -> None:
            self._values = values

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return self._values

    def __init__(self, batches: list[np.ndarray]) -> None:
        self._batches = batches
        self.read = 0

    def __iter__(self) -> Iterator[list[Any]]:
        self.read += 1
        for i, values in enumerate(self._batches):
            yield [self.Tensor(values), np.int64([i])]


def test_data_comes_in_every_form_and_is_read_once() -> None:
    batches = [np.float32([[1, 2, 3]]), np.float32([[-4, 0, 5]])]
    loader = Loader(batches)
    forms = [batches, tuple(batches), iter(batches), [[b] for b in batches], [{"x": b} for b in batches]]
    forms += [[{"x": b, "label": 1} for b in batches], loader]
    for form in forms:
        assert calibrate(models.relu(), form)["x"] == (-4, 5)
    assert loader.read == 1
    assert calibrate(models.relu(), iter(batches), batches=1)["x"] == (1, 3)


@pytest.mark.parametrize("method", METHODS)
def test_memory_does_not_grow_with_the_number_of_batches(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Seconds, once all batches are seen; what histograms take until then is measured.
    threshold = "onnxruntime.quantization.calibrate.HistogramCollector.get_entropy_threshold"
    monkeypatch.setattr(threshold, lambda self, histogram, bins: histogram[1][[0, -1]])

    def batches(count: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(0)
        for i in range(count):
            yield rng.normal(size=(1, 50_000)).astype(np.float32) * (i + 1)

    def peak(count: int) -> int:
        tracemalloc.start()
        calibrate(models.relu(["N", "K"]), batches(count), method=method)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)  # imports
    assert peak(40) < peak(4) * 1.3 + 500_000


def test_a_histogram_is_not_as_long_as_its_values_are_far_apart() -> None:
    histograms = Histograms("entropy", 99.9, 6.0)
    for scale in (1e-6, 1.0, 1e6):
        histograms.add("x", np.float32([-scale, scale / 2, scale]))
    counts = histograms._collector.histogram_dict["x"][0]
    assert len(counts) < 10_000
    assert counts.sum() == 9


def test_onnx_runtime_alone_would_add_bins_without_a_limit() -> None:
    from onnxruntime.quantization.calibrate import HistogramCollector

    collector = HistogramCollector(
        method="entropy", symmetric=False, num_bins=128, num_quantized_bins=128, percentile=99.9, scenario="same"
    )
    for scale in (1e-3, 10.0):
        collector.collect({"x": np.float32([-scale, scale])})
    assert len(collector.histogram_dict["x"][0]) > 1_000_000  # mended upstream? then `Histograms._make_room` may go


BAD: dict[str, tuple[Any, str]] = {
    "none": ([], "data is empty"),
    "not a list": (5, "iterable of inputs.*int was given"),
    "a mapping": ({"x": np.zeros((1, 3), np.float32)}, "iterable of inputs.*dict was given"),
    "another shape": ([np.zeros((1, 3), np.float32), np.zeros((1, 4), np.float32)], "Batch 1 of data does not fit"),
    "another name": ([{"y": np.zeros((1, 3), np.float32)}], "Batch 0 .* no input 'y'"),
    "NaN": ([np.float32([[1, np.nan, 2]])], "Batch 0 of data makes tensor 'x' .*infinite or NaN"),
    "infinite": ([np.float32([[1, 2, 3]]), np.float32([[1, np.inf, 2]])], "Batch 1 of data makes tensor 'x'"),
}


@pytest.mark.parametrize("method", ["minmax", "entropy"])
@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_told_with_its_batch(name: str, method: str) -> None:
    data, message = BAD[name]
    with pytest.raises(omb.CalibrationDataError, match=message):
        calibrate(models.relu(), data, method=method)


def test_an_activation_that_is_not_finite_is_named() -> None:
    nodes = [models.node("Log", ["x"], ["inside"]), models.node("Relu", ["inside"], ["y"])]
    made = models.model(nodes, [models.tensor("x")], [models.tensor("y")])
    with pytest.raises(omb.CalibrationDataError, match="tensor 'inside'.*infinite or NaN"):
        calibrate(made, [np.float32([[1, 0, 2]])])


def test_a_model_that_is_quantized_already_is_refused(tmp_path: Path) -> None:
    nodes = [models.node("QuantizeLinear", ["x", "s"], ["q"]), models.node("DequantizeLinear", ["q", "s"], ["y"])]
    made = models.model(nodes, [models.tensor("x")], [models.tensor("y")], initializers={"s": np.float32(0.1)})
    with pytest.raises(omb.AlreadyQuantizedError, match="QuantizeLinear 'the_QuantizeLinear'.*float model"):
        calibrate(made, [np.zeros((1, 3), np.float32)])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "best"}, "method is one of 'minmax'"), ({"percentile": 120.0, "method": "percentile"}, "percentile")],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(omb.OptionError, match=message):
        calibrate(models.relu(), [np.zeros((1, 3), np.float32)], **options)
