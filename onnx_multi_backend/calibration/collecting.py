# SPDX-License-Identifier: Apache-2.0
"""Running a float model on data, to see what values its tensors take."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

from onnx_multi_backend.calibration.batches import Batch
from onnx_multi_backend.calibration.ranges import Ranges
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines.ort import errors, quantization
from onnx_multi_backend.engines.session import RefusedError
from onnx_multi_backend.errors import (
    CalibrationDataError,
    OptionError,
    OptionTypeError,
    RunError,
    UnsupportedModelError,
)

METHODS = ("minmax", "entropy", "percentile", "distribution")

_MARK = "/omb_range"


def collect(
    model: FloatModel,
    batches: Iterable[Batch],
    method: str,
    *,
    percentile: float = 99.99,
    deviations: float = 6.0,
) -> Ranges:
    """Find the ranges of all float tensors; memory is that of one batch.

    Parameters
    ----------
    model : FloatModel
    batches : iterable of Batch
    method : str
        One of `METHODS`.
    percentile, deviations : float
        See `quantization.Histograms`.

    Raises
    ------
    OptionError
        There is no such method.
    CalibrationDataError
        A tensor becomes infinite or NaN.
    RunError
        ONNX Runtime fails to run the model on a batch.
    UnsupportedModelError
        It does not take the model.
    """
    if method not in METHODS:
        raise OptionError(f"method is one of {', '.join(map(repr, METHODS))}; {method!r} was given.")
    for name, value in (("percentile", percentile), ("deviations", deviations)):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise OptionTypeError(f"{name} is a number; {value!r} was given.")
    if not 50 < percentile <= 100:
        raise OptionError(f"percentile is above 50 and at most 100; {percentile} was given.")
    names = model.activations()
    observed = _MinMax(model, names) if method == "minmax" else _Histogram(model, names, method, percentile, deviations)
    for batch in batches:
        try:
            observed.add(batch.feeds)
        except errors.all_errors() as error:
            raise RunError(
                f"ONNX Runtime fails to run {model.label} on batch {batch.number} of data: {errors.first_line(error)}"
            ) from error
        except _NotFiniteError as error:
            raise CalibrationDataError(
                f"Batch {batch.number} of data makes tensor {error.tensor!r} of {model.label} infinite or NaN: it has no range. Leave the "
                "batch out, or correct the model."
            ) from None
    return Ranges(observed.ranges())


class _NotFiniteError(Exception):
    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor


class _MinMax:
    """The lowest and the highest value, found by the engine: no tensor leaves it."""

    def __init__(self, model: FloatModel, names: list[str]) -> None:
        self._names = names
        self._session = _session(_with_extremes(model.proto, names), model)
        self._outputs = [f"{name}{_MARK}" for name in names]
        self._ranges: dict[str, tuple[float, float]] = {}

    def add(self, feeds: Mapping[str, Any]) -> None:
        for name, found in zip(self._names, self._session.run(self._outputs, dict(feeds)), strict=True):
            if not found.size:  # the tensor has no elements
                continue
            low, high, zero = map(float, found)
            if low == np.inf and high == -np.inf:  # the same, reduced
                continue
            if not zero == 0:  # 0 times an infinity or a NaN is a NaN
                raise _NotFiniteError(name)
            before = self._ranges.get(name, (low, high))
            self._ranges[name] = min(low, before[0]), max(high, before[1])

    def ranges(self) -> dict[str, tuple[float, float]]:
        return self._ranges


class _Histogram:
    def __init__(self, model: FloatModel, names: list[str], method: str, percentile: float, deviations: float) -> None:
        self._names = names
        self._session = _session(_with_outputs(model.proto, names), model)
        self._histograms = quantization.Histograms(method, percentile, deviations)

    def add(self, feeds: Mapping[str, Any]) -> None:
        for name, values in zip(self._names, self._session.run(self._names, dict(feeds)), strict=True):
            if not values.size:
                continue
            if not np.isfinite(values).all():
                raise _NotFiniteError(name)
            self._histograms.add(name, values)

    def ranges(self) -> dict[str, tuple[float, float]]:
        return self._histograms.ranges()


def _session(proto: ModelProto, model: FloatModel) -> Any:
    try:
        return quantization.session(proto, optimized=False)
    except RefusedError as error:
        raise UnsupportedModelError(
            f"{model.label} cannot be calibrated: ONNX Runtime does not take it: {error.words}"
        ) from error


def _with_outputs(proto: ModelProto, names: list[str]) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(proto)
    known = {value.name for value in made.graph.output}
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    return made


def _with_extremes(proto: ModelProto, names: list[str]) -> ModelProto:
    """The model with one more output for each tensor: its minimum, its maximum, and the sum of its elements times zero."""
    made = ModelProto()
    made.CopyFrom(proto)
    graph = made.graph
    constants: dict[str, np.ndarray[Any, Any]] = {
        f"{_MARK}/zero": np.zeros((), np.float32),
        f"{_MARK}/flat": np.array([-1], np.int64),
    }
    graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in constants.items())
    zero, flat_shape = constants
    for name in names:
        own = f"{name}{_MARK}"
        nodes: list[tuple[str, list[str], str, dict[str, Any]]] = [
            ("Cast", [name], f"{own}/float", {"to": TensorProto.FLOAT}),
            ("ReduceMin", [f"{own}/float"], f"{own}/low", {}),  # kept dimensions: without them, none may be 0
            ("ReduceMax", [f"{own}/float"], f"{own}/high", {}),
            ("Mul", [f"{own}/float", zero], f"{own}/zeros", {}),
            ("ReduceSum", [f"{own}/zeros"], f"{own}/sum", {}),
        ]
        flat = []
        for part in ("low", "high", "sum"):
            nodes.append(("Reshape", [f"{own}/{part}", flat_shape], f"{own}/{part}/flat", {}))
            flat.append(f"{own}/{part}/flat")
        nodes.append(("Concat", flat, own, {"axis": 0}))
        graph.node.extend(helper.make_node(op, inputs, [output], **given) for op, inputs, output, given in nodes)
        graph.output.append(helper.make_tensor_value_info(own, TensorProto.FLOAT, [None]))
    return made
