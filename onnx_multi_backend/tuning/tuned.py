# SPDX-License-Identifier: Apache-2.0
"""What `tune` returns."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.measurement import Measurement
from onnx_multi_backend.tuning.report import Report


@dataclass(frozen=True)
class Tuned:
    """The best setup that was found, and all that was measured.

    Attributes
    ----------
    setup : Setup
        ``omb.prepare(model, setup=tuned.setup)``.
    report : Report
    int8 : onnx.ModelProto or None
        The model that the setup is for, where that is not the one that was given.
    """

    setup: Setup
    report: Report
    int8: ModelProto | None = None

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return f"Tuned({self.report.chosen!r})"

    @property
    def measurement(self) -> Measurement:
        """What was measured of the setup."""
        return self.report.named(self.report.chosen)
