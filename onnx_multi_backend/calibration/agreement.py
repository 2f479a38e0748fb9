# SPDX-License-Identifier: Apache-2.0
"""How far apart the results of one int8 model are on different engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from onnx_multi_backend.calibration.accuracy import Run
from onnx_multi_backend.calibration.batches import read
from onnx_multi_backend.calibration.disagreements import difference, quantization_before
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.presets.registry import availability, get_preset

#: The presets of the engines that compute on the processor, besides the one that is measured on.
_PRESETS = ("OrtCpu", "Openvino", "OrtOpenvino")

#: How many steps there may be between results.
_MOST = 1.0


@dataclass(frozen=True)
class Agreement:
    """The largest difference between two presets, over all batches of the data, or up to the first that is more than a step.

    Attributes
    ----------
    steps : float
        In steps of the last quantization before the output.
    presets : (str, str)
    output : str
        The output that differs most; empty where none differs.
    """

    steps: float
    presets: tuple[str, str]
    output: str

    @property
    def holds(self) -> bool:
        """Whether no output is more than a step away."""
        return self.steps <= _MOST

    def __str__(self) -> str:
        return f"{round(self.steps, 2):g} steps between {' and '.join(self.presets)}"


class Engines:
    """The other engines that an int8 model is to give the same results on.

    Parameters
    ----------
    preset : str
        Its results are compared with those of every other usable preset.
    paths : sequence of Path
        Batches. How often a value is at the edge of a step does not depend on whether ranges are from them too, so they may be all that
        there are.
    names : sequence of str
        Of the outputs that are compared: numbers in floating point. Labels and indices have no step.

    Attributes
    ----------
    notes : list of str
        What could not be compared, and why.
    """

    def __init__(self, preset: str, paths: Sequence[Path], names: Sequence[str]) -> None:
        self._preset, self._paths, self._names = preset, paths, names
        usable = availability()
        self._others = [name for name in _PRESETS if name != preset and usable[name].usable]
        self.notes: list[str] = []
        if not self._others:
            self.notes.append(
                "whether engines agree was not measured: there is no other than ONNX Runtime here. pip install openvino"
            )

    def compare(self, model: ModelProto, run: Run) -> Agreement | None:
        """Run a model on every other preset.

        Parameters
        ----------
        model : onnx.ModelProto
            With Q/DQ nodes. Outputs with no quantization before them are left out.
        run : callable
            Runs it on the preset that the others are compared with.

        Returns
        -------
        Agreement or None
            The largest difference; None where no other preset takes the model, or no output has a step.
        """
        steps = {name: step for name in self._names if (step := quantization_before(model, name)) is not None}
        if not steps:
            self.notes.append(
                "whether engines agree was not measured: no output in floating point has a quantization before it"
            )
            return None
        found = []
        for other in self._others:
            try:
                found.append(self._apart(other, model, run, steps))
            except OnnxMultiBackendError as error:
                self.notes.append(
                    f"{other} does not run a model that {self._preset} runs, and was not compared: {error}"
                )
        return max(found, key=lambda agreement: agreement.steps, default=None)

    def _apart(self, other: str, model: ModelProto, run: Run, steps: dict[str, float]) -> Agreement:
        most, where = 0.0, ""
        with get_preset(other).prepare(model, cache_dir=False) as prepared:
            run_there: Run = prepared.run
            for batch in read(self._paths):
                right, found = run(batch.feeds), run_there(batch.feeds)
                for name, step in steps.items():
                    apart = difference(right[name], found[name], step)
                    if apart > most:
                        most, where = apart, name
                if most > _MOST:
                    break
        return Agreement(most, (self._preset, other), where)
