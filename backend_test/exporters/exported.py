# SPDX-License-Identifier: Apache-2.0
"""An exported model, with inputs and what the source framework computes from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Exported:
    """A model and its cases.

    Attributes
    ----------
    name : str
        Of its folder.
    model : ModelProto
    cases : sequence of (inputs, outputs)
        Arrays by the model's own names. Strings are numpy's unicode arrays; a structured array, whose fields are the
        keys, stands for a sequence of maps.
    """

    name: str
    model: ModelProto
    cases: Sequence[tuple[Tensors, Tensors]]

    def write(self, root: Path) -> None:
        """Write ``model.onnx`` and, for each case, ``inputs_N.npz`` and ``outputs_N.npz`` to a folder of `root`."""
        onnx.checker.check_model(self.model, full_check=True)
        folder = root / self.name
        folder.mkdir(parents=True)
        onnx.save(self.model, folder / "model.onnx")
        for i, (inputs, outputs) in enumerate(self.cases):
            np.savez(folder / f"inputs_{i}.npz", allow_pickle=False, **inputs)
            np.savez(folder / f"outputs_{i}.npz", allow_pickle=False, **outputs)
