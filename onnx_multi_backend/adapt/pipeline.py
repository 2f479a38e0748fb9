# SPDX-License-Identifier: Apache-2.0
"""The order of the passes, and what they return together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.passes.boundary_types import boundary_types
from onnx_multi_backend.adapt.passes.broadcast_axes import broadcast_axes
from onnx_multi_backend.adapt.passes.carried_types import carried_types
from onnx_multi_backend.adapt.passes.codes import StringCodes
from onnx_multi_backend.adapt.passes.flags import flags
from onnx_multi_backend.adapt.passes.ir_version import ir_version
from onnx_multi_backend.adapt.passes.opset_version import opset_version
from onnx_multi_backend.adapt.passes.string_codes import string_codes
from onnx_multi_backend.adapt.passes.trailing_empties import trailing_empties
from onnx_multi_backend.adapt.passes.unwrapped import unwrapped
from onnx_multi_backend.adapt.work import Adaptation, BoundaryType, Work
from onnx_multi_backend.models.contents import Contents

#: A pass looks at the work, changes it where the engine's limits ask for it, and records every change.
Pass = Callable[[Work], None]

PASSES: tuple[Pass, ...] = (
    trailing_empties,
    broadcast_axes,
    flags,
    unwrapped,
    string_codes,
    carried_types,
    opset_version,
    boundary_types,
    ir_version,
)


@dataclass(frozen=True)
class Adapted:
    """A model ready for the engine.

    Attributes
    ----------
    proto : onnx.ModelProto
        The very object that was given when `changes` is empty.
    changes : tuple of Adaptation
    inputs, outputs : dict of str to Edge
        Only the graph inputs and outputs that the engine knows by another name and type.
    inserted : frozenset of str
        Names of the nodes that were put in.
    contents : Contents, optional
        Of `proto`, where it was walked through already; one of another model is not used.
    strings : StringCodes, optional
        Where codes stand for strings in `proto`.
    settled : bool
        Whether the engine has all nodes of a rewritten `proto`, and what reads those in another's place is told as much of its integers as before.
    facts : Facts
        What the model says without inference.
    """

    proto: ModelProto
    changes: tuple[Adaptation, ...]
    inputs: dict[str, BoundaryType]
    outputs: dict[str, BoundaryType]
    inserted: frozenset[str]
    contents: Contents | None = field(default=None, compare=False, repr=False)
    strings: StringCodes | None = None
    settled: bool = field(default=False, compare=False, repr=False)
    facts: Facts = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", Facts(self.proto, self.contents))


def untouched(model: ModelProto, contents: Contents | None = None) -> Adapted:
    """The result for ``adapt=False``."""
    return Adapted(model, (), {}, {}, frozenset(), contents)


def adapt(model: ModelProto, limits: Limits, path: Path | None = None, contents: Contents | None = None) -> Adapted:
    """Bring a model within an engine's limits.

    Parameters
    ----------
    model : onnx.ModelProto
        Never altered. Its external data need not be loaded.
    limits : Limits
        What the engine accepts.
    path : Path, optional
        The model's file, for the few weights that a pass has to read.
    contents : Contents, optional
        Of the model, where it was walked through already.
    """
    work = Work(model, limits, path, contents)
    for apply in PASSES:
        apply(work)
    edges = work.inputs, work.outputs
    return Adapted(
        work.model, tuple(work.changes), *edges, frozenset(work.inserted), work.contents, strings=work.strings
    )
