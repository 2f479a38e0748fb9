# SPDX-License-Identifier: Apache-2.0
"""What each target of a quantization wants to find in a model."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_multi_backend.engines.byte_sums import byte_products
from onnx_multi_backend.engines.ort.qdq import TENSORRT, Layout
from onnx_multi_backend.errors import OptionError

#: What products give stays float: each quantization behind what engines round differently is one more place where a value at the edge of
#: a step falls on either side. Convolutions are followed by convolutions, with nothing between that could be rounded.
_PORTABLE = Layout(narrow_weights=True, extra={"OpTypesToExcludeOutputQuantization": ["MatMul", "Gemm"]})


@dataclass(frozen=True)
class QuantizationTarget:
    """Where a quantized model is to run.

    Attributes
    ----------
    name : str
    layout : Layout
        How its Q/DQ nodes are written.
    preset : str
        The preset that accuracy and speed are measured on.
    timed : bool
        Whether that preset tells how fast the target is.
    agrees : bool
        Whether results are to be the same on every engine.
    """

    name: str
    layout: Layout
    preset: str
    timed: bool = True
    agrees: bool = False


def quantization_target(name: str) -> QuantizationTarget:
    """A target by its name.

    Raises
    ------
    OptionError
        There is no such target.
    """
    narrow = Layout(narrow_weights=True)
    known = {
        "openvino": QuantizationTarget("openvino", Layout() if byte_products.are_exact() else narrow, "Openvino"),
        "ort": QuantizationTarget("ort", Layout() if byte_products.are_exact() else narrow, "OrtCpu"),
        "tensorrt": QuantizationTarget("tensorrt", TENSORRT, "OrtCpu", timed=False),
        "portable": QuantizationTarget("portable", _PORTABLE, "OrtCpu", agrees=True),
    }
    if name not in known:
        raise OptionError(f"target is one of {', '.join(map(repr, known))}; {name!r} was given.")
    return known[name]
