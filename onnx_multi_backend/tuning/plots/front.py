# SPDX-License-Identifier: Apache-2.0
"""Which configurations are beaten by no other in both error and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx_multi_backend.tuning.measurement import Measurement
from onnx_multi_backend.tuning.objectives import Objective, ran


def pareto_front(measurements: Sequence[Measurement], objective: Objective) -> list[Measurement]:
    """Those for which no other one is as exact and costs less, or costs as little and is more exact; the cheapest first."""
    found: list[Measurement] = []
    least = math.inf
    for m in sorted(compared(measurements, objective), key=lambda m: (objective.cost(m), error(m))):
        if error(m) < least:
            least = error(m)
            found.append(m)
    return found


def compared(measurements: Sequence[Measurement], objective: Objective) -> list[Measurement]:
    """Those whose cost and error are both known."""
    return [m for m in measurements if m.difference is not None and ran(m, objective)]


def error(measurement: Measurement) -> float:
    """The largest error; infinite where it is not a number, or there is none."""
    largest = math.inf if measurement.difference is None else measurement.difference.largest
    return largest if math.isfinite(largest) else math.inf
