# SPDX-License-Identifier: Apache-2.0
"""The marks of configurations: a shape and a colour for each outcome, so that neither is needed alone."""

from __future__ import annotations

from markupsafe import Markup

from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.plots.svg import element


def class_of(outcome: Outcome) -> str:
    """The outcome as a style sheet calls it."""
    return str(outcome).replace(" ", "-")


def mark(outcome: Outcome, x: float, y: float, *, title: str = "", best: bool = False, size: float = 5) -> Markup:
    """Circle: measured; triangle: not better; small circle: not timed; diamond: inaccurate; square: not allowed; cross: failed.

    The best has a ring.
    """
    s = size
    shapes = {
        Outcome.MEASURED: lambda: element("circle", cx=x, cy=y, r=s),
        Outcome.NOT_BETTER: lambda: _polygon((x - s, y - s * 0.8), (x + s, y - s * 0.8), (x, y + s)),
        Outcome.NOT_TIMED: lambda: element("circle", cx=x, cy=y, r=s * 0.6),
        Outcome.INACCURATE: lambda: _polygon(
            (x, y - s * 1.25), (x + s * 1.25, y), (x, y + s * 1.25), (x - s * 1.25, y)
        ),
        Outcome.NOT_ALLOWED: lambda: element("rect", x=x - s * 0.9, y=y - s * 0.9, width=s * 1.8, height=s * 1.8),
        Outcome.FAILED: lambda: element("path", d=_cross(x, y, s * 0.8)),
    }
    ring = [element("circle", cx=x, cy=y, r=s * 1.9, class_="ring")] if best else []
    named = [element("title", title)] if title else []
    return element("g", *named, *ring, shapes[outcome](), class_=f"mark {class_of(outcome)}")


def _polygon(*points: tuple[float, float]) -> Markup:
    return element("polygon", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in points))


def _cross(x: float, y: float, s: float) -> str:
    return f"M{x - s:.2f} {y - s:.2f}L{x + s:.2f} {y + s:.2f}M{x - s:.2f} {y + s:.2f}L{x + s:.2f} {y - s:.2f}"
