# SPDX-License-Identifier: Apache-2.0
"""How the times of a configuration's runs are spread."""

from __future__ import annotations

from markupsafe import Markup

from onnx_multi_backend.measuring.figures import seconds_text, seconds_tick
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.plots import frame
from onnx_multi_backend.tuning.plots.marks import class_of
from onnx_multi_backend.tuning.plots.scales import Scale, logarithmic
from onnx_multi_backend.tuning.plots.svg import cut, element, line, picture, text
from onnx_multi_backend.tuning.report import Report

_LABELS = 340  # the column of names where there is room for one


def draw(report: Report, size: frame.Size) -> Markup:
    """A row for each configuration that was timed, in the order of the ranking; empty where none was."""
    timed = [m for m in report.ranked if m.latency]
    if not timed:
        return Markup()
    wide = size is frame.WIDE
    row, top = (24.0, 8.0) if wide else (40.0, 8.0)
    bottom = top + row * len(timed) + 4
    ends = [q for m in timed for q in (m.quantile(0.0), m.quantile(1.0))]
    scale = logarithmic(ends, _LABELS + 14.0 if wide else 10.0, size.width - 18)
    parts = frame.across(
        scale, seconds_tick, "time of a run (logarithmic)", top=top, bottom=bottom, most=size.ticks - 2 * wide
    )
    for i, measurement in enumerate(timed):
        y = top + row * (i + 0.5) if wide else top + row * i + 28
        parts.append(_row(measurement, report, scale, y, wide=wide))
    return picture(
        parts,
        width=size.width,
        height=bottom + 44,
        id=f"latency-{size.name}",
        title="Times of the runs of each configuration",
        description="Thin line: shortest to longest run. Bar: the middle half. Dot: median; open circle: 90 % of runs take no longer; "
        "triangle: 99 %. The figures are in the table.",
        class_=size.name,
    )


def _row(measurement: Measurement, report: Report, scale: Scale, y: float, *, wide: bool) -> Markup:
    low, first, p50, third, p90, p99, high = (
        scale(measurement.quantile(q)) for q in (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    )
    figures = ", ".join(f"p{round(100 * q)} {seconds_text(measurement.quantile(q))}" for q in (0.5, 0.9, 0.99))
    chosen = "label strong" if measurement is report.best else "label"
    rejected = measurement.outcome is not Outcome.MEASURED
    name = f"{cut(measurement.name, 40)} ({measurement.outcome})" if rejected else cut(measurement.name, 50)
    label = text(name, _LABELS, y + 4, anchor="end", class_=chosen) if wide else text(name, 10, y - 13, class_=chosen)
    return element(
        "g",
        element("title", f"{measurement.name} ({measurement.outcome}): {figures}"),
        label,
        line(low, y, high, y, "whisker"),
        element("rect", x=first, y=y - 5, width=max(third - first, 1.5), height=10, class_="middle"),
        element("circle", cx=p90, cy=y, r=4, class_="p90"),
        element(
            "polygon", points=f"{p99 - 4:.2f},{y + 4:.2f} {p99 + 4:.2f},{y + 4:.2f} {p99:.2f},{y - 4:.2f}", class_="p99"
        ),
        element("circle", cx=p50, cy=y, r=4.5, class_="p50"),
        class_=f"spread {class_of(measurement.outcome)}",
    )
