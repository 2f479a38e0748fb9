# SPDX-License-Identifier: Apache-2.0
"""From a float model and data to an int8 model that was measured: as accurate as asked, and faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx_multi_backend.calibration.accuracy import Metric
from onnx_multi_backend.calibration.batches import Reader, Spool
from onnx_multi_backend.calibration.checked_options import check_options
from onnx_multi_backend.calibration.choosing import Limits, Quantization, QuantizedModel
from onnx_multi_backend.calibration.progress import Progress
from onnx_multi_backend.calibration.source import read_float
from onnx_multi_backend.calibration.targets import quantization_target
from onnx_multi_backend.models.given import ModelLike


def quantize(
    model: ModelLike,
    data: Any,
    *,
    target: str = "portable",
    method: str = "minmax",
    exclude: Sequence[str] = (),
    max_drop: float | None = None,
    metric: Metric | None = None,
    metric_range: tuple[float, float] = (0.0, 1.0),
    min_cosine: float | None = 0.99,
    require_speedup: bool = True,
    batches: int | None = None,
    progress: bool = True,
) -> QuantizedModel:
    """Quantize a float model to int8, and measure what that costs and gains.

    One batch in five is held back: accuracy is measured on these. Layers stay float, the most sensitive first, until the limits hold, and for
    ``portable`` the first or last of them until engines agree; so do the kinds of layers that int8 makes slower on this machine. Where int8 is not
    faster, or no int8 model holds the limits, the float model is returned, and the report says so.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        All its weights fit into memory, and into 2 GiB.
    data : iterable
        Of inputs: arrays, lists in input order, mappings by name, or what a DataLoader gives. It is read once. What a batch holds
        beyond the inputs are its labels.
    target : {"portable", "openvino", "ort", "tensorrt"}
        ``portable``: 7-bit weights, which no processor saturates on, and layers in int8 only as far as results on the data are the same on every
        engine, within one step of the last quantization before each output. ``openvino`` and ``ort``: what is fastest there on this processor.
        ``tensorrt``: symmetric, zero points 0, biases in float; it cannot be timed without TensorRT.
    method : {"minmax", "entropy", "percentile", "distribution"}
        How ranges are found, see `calibrate`.
    exclude : sequence of str
        Names of nodes, or operators, that stay float.
    max_drop : float, optional
        How much of the metric may be lost, with a confidence of 95 %.
    metric : callable, optional
        Takes the outputs and the labels of a batch; returns one figure, or one for each sample. Higher is better.
    metric_range : (float, float)
        Between what the metric's figures lie.
    min_cosine : float or None
        The least cosine similarity of any output on any batch that was held back; None: it does not matter. The noise may not be more than
        twice what goes with such a cosine either: a result that is three times too small has a cosine of 1.
    require_speedup : bool
        Return the float model where int8 is not faster on this machine. False: where it is as accurate as asked, int8 is returned,
        for a machine that is another.
    batches : int, optional
        Read no more than these.
    progress : bool
        Show bars where stderr is a terminal.

    Returns
    -------
    QuantizedModel

    Raises
    ------
    AlreadyQuantizedError
    CalibrationDataError
        There is no data, a batch does not fit the model or makes a tensor infinite or NaN.
    OptionError
        An option is wrong, or the metric's figures are out of their range.
    UnsupportedModelError
        ONNX Runtime does not take the model, or its opset cannot be raised to 13.
    """
    check_options(
        exclude=exclude,
        max_drop=max_drop,
        metric=metric,
        metric_range=metric_range,
        min_cosine=min_cosine,
        batches=batches,
    )
    chosen = quantization_target(target)
    shown = Progress(progress)
    given = read_float(model)
    reader = Reader(data, given.signature, batches)
    with Spool(reader, shown, proves=metric is not None) as spool:
        work = Quantization(given, spool, chosen, method, exclude, Limits(min_cosine, max_drop), shown)
        return work.run(metric, metric_range, require_speedup=require_speedup)
