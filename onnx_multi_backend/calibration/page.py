# SPDX-License-Identifier: Apache-2.0
"""The report of a quantization as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

import math

from onnx_multi_backend import page_style
from onnx_multi_backend.calibration.report import WHY, LayerReport, QuantizationReport

#: The sensitivities that a bar is drawn between, as powers of ten.
_LEAST, _MOST = -8.0, 0.0


def render(report: QuantizationReport) -> str:
    """Return the page, to be written as UTF-8."""
    layers = sorted(report.layers, key=lambda layer: layer.sensitivity, reverse=True)
    template = page_style.environment(__package__, "page_files").get_template("report.html.j2")
    page = template.render(
        report=report,
        layers=layers,
        why=WHY,
        width=_width,
        base=page_style.base(),
        milliseconds=_milliseconds,
        number=_number,
    )
    return page.encode("utf-8", "backslashreplace").decode(
        "utf-8"
    )  # the name of a model's file may hold what is not text


def _width(layer: LayerReport) -> float:
    """How long a layer's bar is, in percent: its sensitivity on a logarithmic scale."""
    if not layer.sensitivity > 0:
        return 0.0
    power = math.log10(layer.sensitivity) if math.isfinite(layer.sensitivity) else _MOST
    return round(100 * (min(max(power, _LEAST), _MOST) - _LEAST) / (_MOST - _LEAST), 1)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else ("exact" if value > 0 else "none")
