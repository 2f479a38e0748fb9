# SPDX-License-Identifier: Apache-2.0
"""Weights that lie in files beside the model."""

from __future__ import annotations

import math
import os
from pathlib import Path

from onnx import ModelProto, TensorProto

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.graph_walk import all_tensors
from onnx_multi_backend.tensors import PACKED_BITS, numpy_dtype


def has_external_data(model: ModelProto) -> bool:
    """True when any tensor of the model lies in another file."""
    return any(t.data_location == TensorProto.EXTERNAL for t in all_tensors(model))


def check_external_data(model: ModelProto, *, path: Path | None, label: str) -> None:
    """Hold every tensor that lies in another file to what is there.

    Raises
    ------
    InvalidModelError
        The file is missing, too short, outside the model's folder, or cannot be found because the model has no path.
    """
    for tensor in all_tensors(model):
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        fields = {e.key: e.value for e in tensor.external_data}
        where = f"{label}: external data of tensor {tensor.name!r}"
        location = fields.get("location", "")
        if path is None:
            raise InvalidModelError(
                f"{where} lies in the file {location!r}, and a model given as bytes or ModelProto has no folder to "
                "look in. Pass the model's path, or load its weights first (onnx.load_external_data_for_model)."
            )
        folder = path.parent
        try:
            inside = location != "" and _inside(path, location)
        except (OSError, ValueError, RuntimeError) as error:  # no file can have this name; a loop of links
            raise InvalidModelError(f"{where} cannot be found: {location[:80]!r}: {error}. Export it again.") from error
        if not location or os.path.isabs(location) or ".." in Path(location).parts or not inside:
            raise InvalidModelError(
                f"{where} points outside the model's folder: {location!r}. Only files below '{folder}' are read; move "
                "the file there and correct the location (onnx.save writes it right)."
            )
        file = folder / location
        if not file.is_file():
            raise InvalidModelError(f"{where} is missing: there is no file '{file}'. Put it beside the model.")
        needed = _bytes_of(tensor)
        try:
            offset, length = int(fields.get("offset", 0)), int(fields.get("length", needed))
        except ValueError:
            raise InvalidModelError(f"{where} has an offset or length that is no number. Export it again.") from None
        if offset < 0 or length < needed:
            raise InvalidModelError(
                f"{where} has offset {offset} and length {length}; its shape and type need {needed} bytes. Export it again."
            )
        end = offset + length
        if end > file.stat().st_size:
            raise InvalidModelError(
                f"{where} is truncated: it ends at byte {end} of '{file}', which has {file.stat().st_size} bytes."
            )


def _bytes_of(tensor: TensorProto) -> int:
    bits = PACKED_BITS.get(tensor.data_type) or 8 * numpy_dtype(tensor.data_type).itemsize
    return -(-math.prod(tensor.dims) * bits // 8)


def _inside(model_path: Path, location: str) -> bool:
    """A symbolic link may lead to the folder of the model's own link target (caches do that), nowhere else."""
    target = (model_path.parent / location).resolve()
    return any(target.is_relative_to(f) for f in (model_path.parent.resolve(), model_path.resolve().parent))
