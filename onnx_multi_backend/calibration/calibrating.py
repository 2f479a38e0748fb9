# SPDX-License-Identifier: Apache-2.0
"""From a float model and data to a calibration table."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.calibration.batches import Reader
from onnx_multi_backend.calibration.checked_options import check_batches
from onnx_multi_backend.calibration.collecting import collect
from onnx_multi_backend.calibration.progress import Progress
from onnx_multi_backend.calibration.source import read_float
from onnx_multi_backend.calibration.table import CalibrationTableTensorrt
from onnx_multi_backend.errors import CalibrationDataError
from onnx_multi_backend.models.given import ModelLike


def calibrate(
    model: ModelLike,
    data: Any,
    *,
    method: str = "minmax",
    batches: int | None = None,
    percentile: float = 99.99,
    deviations: float = 6.0,
    progress: bool = True,
) -> CalibrationTableTensorrt:
    """Run a float model on data and take the ranges of its tensors.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    data : iterable
        Of inputs: arrays, lists in input order, mappings by name, or what a DataLoader gives (labels behind the inputs are left
        out). It is read once, one batch at a time.
    method : {"minmax", "entropy", "percentile", "distribution"}
        ``minmax``: all that was seen. ``percentile``: all but the outermost values. ``entropy``: the range whose 128 steps lose the
        least information, as TensorRT chooses it. ``distribution``: so many standard deviations around the mean.
    batches : int, optional
        Read no more than these.
    percentile, deviations : float
        For the methods of these names.
    progress : bool
        Show a bar where stderr is a terminal.

    Returns
    -------
    CalibrationTableTensorrt
        The names are those of the model as it was given.

    Raises
    ------
    CalibrationDataError
        There is no data, a batch does not fit the model or makes a tensor infinite or NaN.
    AlreadyQuantizedError
        The model has Q/DQ nodes.
    OptionError
        There is no such method.
    """
    check_batches(batches)
    source = read_float(model)
    reader = Reader(data, source.signature, batches)
    with Progress(progress).each("Calibrating", reader, batches) as shown:
        ranges = collect(source, shown, method, percentile=percentile, deviations=deviations)
    if not ranges:
        raise CalibrationDataError(
            f"No tensor of {source.label} has a range: data has no elements, or the model no floats."
        )
    return CalibrationTableTensorrt(ranges)
