# SPDX-License-Identifier: Apache-2.0
"""What a search tried, and how good the best was by then."""

from __future__ import annotations

import math

from markupsafe import Markup

from onnx_multi_backend.measuring.figures import significant
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.objectives import Objective, objective_of, ran
from onnx_multi_backend.tuning.plots import frame
from onnx_multi_backend.tuning.plots.marks import mark
from onnx_multi_backend.tuning.plots.scales import Scale, from_zero, logarithmic
from onnx_multi_backend.tuning.plots.svg import element, picture
from onnx_multi_backend.tuning.report import Report

_LEFT, _TOP, _BOTTOM = 74.0, 28.0, 340.0


def draw(report: Report, size: frame.Size) -> Markup:
    """A mark for each configuration at the time when it was first tried; those without a figure lie above the scale."""
    if report.kind != "tune" or not report.measurements:
        return Markup()
    objective = objective_of(report)
    without = [m for m in report.measurements if not ran(m, objective)]
    right, top = size.width - 18, _TOP + (30 if without else 0)
    end = max([report.seconds, *(m.at for m in report.measurements)])
    x = from_zero(end, _LEFT, right)
    y = logarithmic((objective.cost(m) for m in report.measurements), _BOTTOM, top)
    parts = frame.across(
        x, lambda value: f"{value:g} s", "time since the start", top=_TOP, bottom=_BOTTOM, most=size.ticks
    )
    if len(without) < len(report.measurements):
        parts += frame.upward(y, objective.tick, objective.axis, left=_LEFT, right=right)
        parts.append(_best_so_far(report, objective, x, y))
    parts += frame.band("no figure", _TOP + 12, left=_LEFT, right=right) if without else []
    for m in report.measurements:
        known = ran(m, objective)
        words = f"{m.name} ({m.outcome}) at {significant(m.at)} s: {objective.text(m) if known else m.reason or 'no figure'}"
        place = y(objective.cost(m)) if known else _TOP + 12
        parts.append(mark(m.outcome, x(m.at), place, title=words, best=m is report.best))
    return picture(
        parts,
        width=size.width,
        height=_BOTTOM + 44,
        id=f"progress-{size.name}",
        title="What the search tried over time",
        description="Each mark is a configuration when it was first tried; low is better. The line is the best so far of those that are "
        "exact enough and allowed.",
        class_=size.name,
    )


def _best_so_far(report: Report, objective: Objective, x: Scale, y: Scale) -> Markup:
    path, least = "", math.inf
    for m in sorted(report.measurements, key=_first_tried):
        if m.outcome in (Outcome.MEASURED, Outcome.NOT_BETTER) and ran(m, objective) and objective.cost(m) < least:
            least = objective.cost(m)
            path += f"H{x(m.at):.2f}V{y(least):.2f}" if path else f"M{x(m.at):.2f} {y(least):.2f}"
    return element("path", d=f"{path}H{x.end:.2f}", class_="so-far") if path else Markup()


def _first_tried(measurement: Measurement) -> float:
    return measurement.at
