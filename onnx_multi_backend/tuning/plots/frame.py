# SPDX-License-Identifier: Apache-2.0
"""How large plots are, and the lines and figures of their scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from onnx_multi_backend.tuning.plots.scales import Scale
from onnx_multi_backend.tuning.plots.svg import element, line, text


@dataclass(frozen=True)
class Size:
    """A screen that a plot is drawn for: a page holds it for each, and shows the one that fits.

    Attributes
    ----------
    name : str
    width : float
    ticks : int
        How many figures a scale from left to right has room for.
    """

    name: str
    width: float
    ticks: int


WIDE, NARROW = Size("wide", 1000, 12), Size("narrow", 400, 5)


def across(
    scale: Scale, tick: Callable[[float], str], title: str, *, top: float, bottom: float, most: int
) -> list[Markup]:
    """The scale from left to right, below a plot."""
    parts = []
    for value in scale.ticks(most):
        parts += [line(scale(value), top, scale(value), bottom, "grid")]
        parts += [text(tick(value), scale(value), bottom + 16, anchor="middle", class_="tick")]
    parts.append(text(title, (scale.start + scale.end) / 2, bottom + 36, anchor="middle", class_="axis"))
    return parts


def upward(scale: Scale, tick: Callable[[float], str], title: str, *, left: float, right: float) -> list[Markup]:
    """The scale from bottom to top, on the left; its title stands above it."""
    parts = []
    for value in scale.ticks(7):
        parts += [line(left, scale(value), right, scale(value), "grid")]
        parts += [text(tick(value), left - 8, scale(value) + 4, anchor="end", class_="tick")]
    return [*parts, text(title, 4, 14, class_="axis")]


def band(name: str, y: float, *, left: float, right: float) -> list[Markup]:
    """A place outside of a scale, for what has none on it."""
    return [
        element("rect", x=left, y=y - 12, width=right - left, height=24, class_="band"),
        text(name, left - 8, y + 4, anchor="end", class_="tick"),
    ]
