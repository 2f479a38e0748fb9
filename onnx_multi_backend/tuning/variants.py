# SPDX-License-Identifier: Apache-2.0
"""Variants of a model in int8, for the presets that may run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onnx_multi_backend.calibration import QuantizedModel, quantize
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.models.given import ModelLike

#: Which presets run the int8 model of a target.
_RUN_BY = {"ort": ("OrtCpu",), "openvino": ("Openvino", "OrtOpenvino")}


class Variant(NamedTuple):
    """The model in int8.

    Attributes
    ----------
    name : str
        ``int8 (ort)``.
    presets : list of str
        That run it.
    made : QuantizedModel
    """

    name: str
    presets: list[str]
    made: QuantizedModel


def int8_variants(
    model: ModelLike, data: Sequence[Any], presets: Sequence[str], min_cosine: float | None
) -> tuple[list[Variant], list[str]]:
    """Quantize the model for each target that a preset runs.

    Returns
    -------
    list of Variant, list of str
        And notes on targets for which the model stays float.
    """
    found: list[Variant] = []
    notes: list[str] = []
    for target, runners in _RUN_BY.items():
        runs = [name for name in presets if name in runners]
        if not runs:
            continue
        try:
            made = quantize(
                model,
                data,
                target=target,
                min_cosine=min_cosine if min_cosine is not None else 0.99,
                require_speedup=False,
                progress=False,
            )
        except OnnxMultiBackendError as error:
            notes.append(f"No int8 for {target}: {error}")
            continue
        if made.report.quantized:
            found.append(Variant(f"int8 ({target})", runs, made))
        else:
            notes.append(f"No int8 for {target}: {made.report.reason}")
    return found, notes
