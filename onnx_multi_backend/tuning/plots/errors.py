# SPDX-License-Identifier: Apache-2.0
"""Error against cost, with the front of those that no other beats in both."""

from __future__ import annotations

import math

from markupsafe import Markup

from onnx_multi_backend.measuring.figures import cosine_text, error_text, power_tick
from onnx_multi_backend.tuning.objectives import objective_of
from onnx_multi_backend.tuning.plots import frame
from onnx_multi_backend.tuning.plots.front import compared, error, pareto_front
from onnx_multi_backend.tuning.plots.marks import mark
from onnx_multi_backend.tuning.plots.scales import logarithmic
from onnx_multi_backend.tuning.plots.svg import element, line, picture, text
from onnx_multi_backend.tuning.report import Report

_LEFT, _TOP = 74.0, 28.0


def draw(report: Report, size: frame.Size) -> Markup:
    """A mark for each configuration; errors of 0 lie below the scale, and what is not finite above it. Empty without errors."""
    objective = objective_of(report)
    shown = compared(report.measurements, objective)
    if not shown:
        return Markup()
    exact = any(error(m) == 0 for m in shown)
    infinite = any(math.isinf(error(m)) for m in shown)
    right, bottom = size.width - 18, 360.0
    top = _TOP + (30 if infinite else 0)
    floor = bottom - (30 if exact else 0)
    x = logarithmic((objective.cost(m) for m in shown), _LEFT, right)
    limit = report.limits.max_error
    y = logarithmic([*map(error, shown), *([limit] if limit else [])], floor, top)

    def place(value: float) -> float:
        return bottom - 12 if value == 0 else _TOP + 12 if math.isinf(value) else y(value)

    parts = frame.across(x, objective.tick, objective.axis, top=_TOP, bottom=bottom, most=size.ticks)
    if any(0 < error(m) < math.inf for m in shown):
        parts += frame.upward(y, power_tick, "largest error (logarithmic)", left=_LEFT, right=right)
    else:
        parts.append(text("largest error", 4, 14, class_="axis"))
    parts += frame.band("0", bottom - 12, left=_LEFT, right=right) if exact else []
    parts += frame.band("not finite", _TOP + 12, left=_LEFT, right=right) if infinite else []
    if limit:
        parts.append(line(_LEFT, y(limit), right, y(limit), "limit"))
        parts.append(text("allowed", right, y(limit) - 5, anchor="end", class_="tick"))
    front = pareto_front(report.measurements, objective)
    places = [(x(objective.cost(m)), place(error(m))) for m in front]
    parts.append(_stairs(places, right))
    best = report.best
    for m in shown:
        words = f"{m.name} ({m.outcome}): {objective.text(m)}, largest error {error_text(error(m))}"
        if m.difference is not None:
            words += f", cosine {cosine_text(m.difference.cosine)}"
        parts.append(mark(m.outcome, x(objective.cost(m)), place(error(m)), title=words, best=m is best))
    for number, (mx, my) in enumerate(places, 1):
        parts.append(text(str(number), mx - 7, my - 8, anchor="end", class_="number"))
    return picture(
        parts,
        width=size.width,
        height=bottom + 44,
        id=f"errors-{size.name}",
        title="Error against cost of each configuration",
        description="Each mark is a configuration; left is better, low is more exact. The line joins those that no other beats in both; they "
        "are numbered, and listed below.",
        class_=size.name,
    )


def _stairs(places: list[tuple[float, float]], right: float) -> Markup:
    path = "".join(f"M{x:.2f} {y:.2f}" if i == 0 else f"H{x:.2f}V{y:.2f}" for i, (x, y) in enumerate(places))
    return element("path", d=f"{path}H{right:.2f}", class_="front")
