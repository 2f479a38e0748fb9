# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them: with the digits that mean something, and a unit that fits."""

from __future__ import annotations

import math

from onnx_multi_backend.measuring.intervals import Interval

#: What is shown for a figure that is missing.
NONE = "-"

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float, digits: int = 3) -> str:
    """A number with so many digits that count, and never an exponent: ``1.23``, ``0.0123``, ``1234``."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    return f"{value:.{max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)}f}"


def seconds_text(seconds: float | None) -> str:
    """``1.23 ms``; minutes from ten on."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds >= 600:
        return f"{round(seconds / 60)} min"
    factor, unit = _unit(seconds)
    return f"{significant(seconds / factor)} {unit}"


def seconds_tick(seconds: float) -> str:
    """A round number of seconds, as the scale of a plot has them: ``500 µs``."""
    factor, unit = _unit(seconds)
    return f"{seconds / factor:.6g} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    rounded = float(f"{seconds:.3g}")
    return next((u for u in _UNITS if rounded >= u[0] * (1 - 1e-9)), _UNITS[-1]) if rounded > 0 else (1.0, "s")


def bytes_text(size: float) -> str:
    """A size in the largest unit that fits."""
    if size < 1024:
        return f"{size:.0f} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            return f"{size:.1f} {unit}"
    raise AssertionError


def share_text(share: float | None) -> str:
    """A share in percent."""
    if share is None or not math.isfinite(share):
        return NONE
    percent = 100 * share
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def error_text(value: float) -> str:
    """An error: ``1.2e-05``, ``0``; or that it is not finite."""
    if not math.isfinite(value):
        return "not finite"
    return "0" if value == 0 else f"{value:.2g}"


def power_tick(value: float) -> str:
    """A power of ten, or a round number beside one."""
    factor, power = f"{value:.3e}".split("e")
    factor = factor.rstrip("0").rstrip(".")
    exponent = f"10{str(int(power)).translate(_SUPERSCRIPTS)}"
    return exponent if factor == "1" else f"{factor}·{exponent}"


def cosine_text(value: float) -> str:
    """A cosine; 1 only where it is 1."""
    if not math.isfinite(value):
        return NONE
    return "1" if value == 1 else f"{min(value, 0.999999) if value < 1 else value:.6f}"


def ratio_text(interval: Interval) -> str:
    """A ratio and its interval, where it has one: ``1.23 (1.20 to 1.27)``, ``about 1.23``."""
    if not bounded(interval):
        return f"about {significant(interval.median)}"
    return f"{significant(interval.median)} ({range_text(interval)})"


def range_text(interval: Interval) -> str:
    """Between what a ratio lies."""
    return f"{significant(interval.low)} to {significant(interval.high)}"


def bounded(interval: Interval) -> bool:
    """Whether enough was measured to say what a ratio lies between."""
    return interval.low > 0 and math.isfinite(interval.high)
