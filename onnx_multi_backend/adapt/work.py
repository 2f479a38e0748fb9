# SPDX-License-Identifier: Apache-2.0
"""The model under adaptation, with the record of what was done to it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from onnx import ModelProto

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.passes.codes import StringCodes
from onnx_multi_backend.models.contents import Contents


class Adaptation(NamedTuple):
    """One change that was made to a model before an engine got it."""

    pass_name: str
    node: str
    change: str
    reason: str

    def __str__(self) -> str:
        where = f" at {self.node}" if self.node else ""
        return f"{self.pass_name}{where}: {self.change} ({self.reason})"


class BoundaryType(NamedTuple):
    """How a graph input or output of the user's model appears to the engine."""

    engine_name: str
    elem_type: int


class Work:
    """A model and what the passes did to it. The user's ModelProto is copied before the first change, never altered.

    Attributes
    ----------
    model : onnx.ModelProto
        The model as it stands, for reading.
    contents : Contents
        Its nodes and tensors, until `edit` is called again.
    """

    def __init__(
        self, model: ModelProto, limits: Limits, path: Path | None = None, contents: Contents | None = None
    ) -> None:
        self.model = model
        self.contents = contents if contents is not None and contents.model is model else Contents(model)
        self._owned = False
        self.path = path
        self.limits = limits
        self.changes: list[Adaptation] = []
        self.inputs: dict[str, BoundaryType] = {}
        self.outputs: dict[str, BoundaryType] = {}
        self.inserted: set[str] = set()
        self.strings: StringCodes | None = None

    def edit(self) -> ModelProto:
        """The model as it stands, for changing."""
        if not self._owned:
            copy = ModelProto()
            copy.CopyFrom(self.model)
            self.model, self._owned = copy, True
        self.contents = Contents(self.model)
        return self.model

    def replace(self, model: ModelProto) -> None:
        """Go on with another model, made from this one."""
        self.model, self.contents, self._owned = model, Contents(model), True

    def inline(self, flat: ModelProto, reason: str) -> None:
        """Go on with the model without its local functions."""
        functions = list(self.model.functions)
        self.replace(flat)
        for function in functions:
            name = f"{function.domain}.{function.name}" if function.domain else function.name
            self.changes.append(Adaptation("inline_functions", name, "its body takes the place of each call", reason))
