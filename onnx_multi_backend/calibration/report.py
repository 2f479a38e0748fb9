# SPDX-License-Identifier: Apache-2.0
"""What was measured while a model was quantized."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from onnx_multi_backend.calibration.accuracy import Accuracy
from onnx_multi_backend.calibration.agreement import Agreement
from onnx_multi_backend.calibration.speed import Ratio

#: Why a layer stayed float.
ACCURACY, AGREEMENT, SPEED, EXCLUDED = "accuracy", "agreement", "speed", "excluded"

#: The same in words.
WHY = {
    ACCURACY: "for accuracy",
    AGREEMENT: "so that engines agree",
    SPEED: "for speed",
    EXCLUDED: "as asked",
}


@dataclass(frozen=True)
class LayerReport:
    """One layer.

    Attributes
    ----------
    name, op_type, group : str
    sensitivity : float
        See `layers.Layer`.
    kept_float : str
        ``accuracy``, ``agreement``, ``speed``, ``excluded``; empty for a quantized layer.
    """

    name: str
    op_type: str
    group: str
    sensitivity: float
    kept_float: str = ""


@dataclass(frozen=True)
class QuantizationReport:
    """What was done and what came of it.

    Attributes
    ----------
    model, target, preset, method, writer : str
        `preset` is what was measured on; `writer` the package that wrote the Q/DQ nodes.
    processor : str
    versions : dict of str to str
        Of the packages that took part.
    quantized : bool
        Whether the model has Q/DQ nodes; if not, `reason` says why.
    reason : str
    calibration_batches, held_back_batches : int
    independent : bool
        Whether accuracy was measured on other batches than those that the ranges are from.
    accuracy : Accuracy
        Of the model that is returned, or of the one that was rejected.
    agreement : Agreement or None
        How far apart engines are on that model; None where it was not measured, as for all targets but ``portable``.
    speed : Ratio or None
        The quantized model's time by the float model's, on the same preset; None where the target cannot be timed here.
    layers : tuple of LayerReport
    notes : tuple of str
    """

    model: str
    target: str
    preset: str
    method: str
    writer: str
    processor: str
    versions: dict[str, str]
    quantized: bool
    reason: str
    calibration_batches: int
    held_back_batches: int
    independent: bool
    accuracy: Accuracy
    agreement: Agreement | None
    speed: Ratio | None
    layers: tuple[LayerReport, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """All of it as JSON; infinities are null."""
        return json.dumps(_finite(asdict(self)), indent=1)

    def to_html(self) -> str:
        """All of it as a page that needs nothing else."""
        from onnx_multi_backend.calibration.page import render

        return render(self)

    def __str__(self) -> str:
        counts = sum(not layer.kept_float for layer in self.layers)
        lines = [self.headline, f"layers in int8: {counts} of {len(self.layers)}" if self.quantized else ""]
        for why, words in WHY.items():
            if self.quantized and (names := [layer.name for layer in self.layers if layer.kept_float == why]):
                lines.append(f"kept float {words}: {', '.join(names)}")
        rejected = "" if self.quantized else "of the int8 model that was rejected: "
        lines += [
            f"{rejected}output {o.name}: cosine {o.cosine:.5f}, SQNR {o.sqnr:.1f} dB, largest error {o.largest:.3g}"
            for o in self.accuracy.outputs
        ]
        if self.agreement is not None:
            lines.append(f"largest difference of engines: {self.agreement}, in steps of the last quantization")
        if (drop := self.accuracy.metric) is not None:
            lines.append(
                f"metric: {drop.float_figure:.4g} in float, {drop.int8_figure:.4g} in int8; the drop is at most {drop.bound:.3g} with 95 % "
                f"confidence, if the {drop.samples} samples are independent"
            )
        return "\n".join(filter(None, [*lines, *self.notes]))

    @property
    def headline(self) -> str:
        """The result in a sentence."""
        return f"{self.model} {self.result}"

    @property
    def result(self) -> str:
        """What became of the model."""
        if not self.quantized:
            return f"stays float: {self.reason}"
        if self.speed is None:
            return f"is quantized (target {self.target}, which cannot be timed here)"
        return f"is quantized (target {self.target}): {self.speed.median:.2f} times the float model's time on {self.preset}"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value
