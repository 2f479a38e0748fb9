# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime has for calibration: plain sessions, its offline optimizer, its histograms."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from onnx_multi_backend.engines.ort import errors, runtime, threads
from onnx_multi_backend.engines.session import RefusedError

#: Bins of a histogram at first, and the most that it may grow to.
_BINS, _MOST_BINS = 512, 4096

#: Beyond these magnitudes numpy has no bins in float32, and the range is what was seen.
_SMALLEST, _LARGEST = 1e-30, 1e37


def session(model: ModelProto, *, optimized: bool = True) -> Any:
    """A plain session on the CPU.

    Raises
    ------
    RefusedError
        ONNX Runtime does not take the model.
    """
    ort = runtime.load()
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for name, number in threads.own(None).items():
        setattr(options, name, number)
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    return _session(model.SerializeToString(), options)


def _session(model: bytes, options: Any) -> Any:
    try:
        return runtime.session_class()(model, options, providers=["CPUExecutionProvider"])
    except errors.all_errors() as error:
        raise RefusedError(errors.first_line(error), lacks_kernel=False) from error


def simplified(model: ModelProto) -> ModelProto:
    """A model as ONNX Runtime's basic optimizations leave it: constants folded, normalizations merged into convolutions.

    Raises
    ------
    RefusedError
    """
    ort = runtime.load()
    with tempfile.TemporaryDirectory(prefix="onnx_multi_backend_") as folder:
        file = Path(folder) / "model.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(file)
        _session(model.SerializeToString(), options)
        return onnx.load(file)


class Histograms:
    """Histograms of tensors, and the ranges that a method takes from them.

    ONNX Runtime's `HistogramCollector` counts and chooses; corrected here: it adds bins without a limit where a later value is
    far larger than the first ones. For ``distribution`` it tells mean and standard deviation, and leaves the range to its caller.

    Parameters
    ----------
    method : {"entropy", "percentile", "distribution"}
    percentile : float
        For ``percentile``: how many values in a hundred are within the range.
    deviations : float
        For ``distribution``: how many standard deviations from the mean are within the range.
    """

    def __init__(self, method: str, percentile: float, deviations: float) -> None:
        runtime.load()
        from onnxruntime.quantization.calibrate import HistogramCollector

        self._method = method
        self._deviations = deviations
        self._collector = HistogramCollector(
            method=method,
            symmetric=False,
            num_bins=_BINS,
            num_quantized_bins=128,
            percentile=percentile,
            scenario="same",
        )
        self._seen: dict[str, tuple[float, float]] = {}
        self._whole: set[str] = set()

    def add(self, name: str, values: np.ndarray[Any, Any]) -> None:
        """Count the values of a tensor; they are finite, and there is one at least."""
        values = np.asarray(values, np.float32)
        low, high = float(values.min()), float(values.max())
        before = self._seen.get(name, (low, high))
        self._seen[name] = min(low, before[0]), max(high, before[1])
        magnitude = max(abs(low), abs(high))
        if not _SMALLEST < magnitude < _LARGEST:
            self._whole.add(name)
        if name in self._whole:
            return
        self._make_room(name, magnitude)
        with silent():
            self._collector.collect({name: values})

    def _make_room(self, name: str, magnitude: float) -> None:
        """Widen the bins of a histogram, where it would get too many."""
        known = self._collector.histogram_dict.get(name)
        if known is not None and known[4] and magnitude > known[4] * _MOST_BINS / len(known[0]):
            self._rebin(name, magnitude)

    def _rebin(self, name: str, magnitude: float) -> None:
        """Count what a histogram holds in bins of another width."""
        counts, edges, low, high, _ = self._collector.histogram_dict[name]
        wide = float(np.float32(magnitude))
        new, new_edges = np.histogram((edges[1:] + edges[:-1]) / 2, _BINS, range=(-wide, wide), weights=counts)
        self._collector.histogram_dict[name] = (
            new.astype(counts.dtype),
            new_edges.astype(edges.dtype),
            low,
            high,
            np.array(wide, np.float32),
        )

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each tensor, within what was seen of it."""
        constant = {name for name, (low, high) in self._seen.items() if low == high} | self._whole
        for name in constant:  # there is nothing to choose, and entropy divides by zero
            self._collector.histogram_dict.pop(name, None)
        for name, known in self._collector.histogram_dict.items():
            if len(known[0]) > _BINS:  # entropy takes time with the square of them
                self._rebin(name, float(known[4]))
        found: dict[str, tuple[float, float]] = {}
        if self._collector.histogram_dict:
            with silent(), np.errstate(all="ignore"):
                result = self._collector.compute_collection_result()
            found = {name: self._range(data) for name, data in result.items()}
        return {name: _within(found.get(name, seen), seen) for name, seen in self._seen.items()}

    def _range(self, data: Any) -> tuple[float, float]:
        values = data.to_dict() if hasattr(data, "to_dict") else dict(zip(("lowest", "highest"), data, strict=False))
        if self._method != "distribution":
            return float(values["lowest"]), float(values["highest"])
        mean, spread = float(values["avg"]), self._deviations * float(values["std"])
        return mean - spread, mean + spread


def _within(found: tuple[float, float], seen: tuple[float, float]) -> tuple[float, float]:
    low, high = max(found[0], seen[0]), min(found[1], seen[1])
    return (low, high) if low <= high else seen


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Keep ONNX Runtime's quantization from printing."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
