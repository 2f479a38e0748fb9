# SPDX-License-Identifier: Apache-2.0
"""What every engine gives back once it has compiled a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from onnx import ModelProto, TypeProto

from onnx_multi_backend.adapt import Adaptation, Adapted, Limits
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.placement import NodePlacement

#: One value at the boundary: an array, a list (sequence), a dict (map), or None (an empty optional).
Value = Any
Feeds = Mapping[str, Value]


class Session(Protocol):
    """A compiled model. Safe from several threads; what `run` returns belongs to the caller."""

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        """What the engine's own quirks made us change while it compiled the model."""

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once; the results stand in the order of the graph's outputs."""

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node that was not folded runs."""


class Target(Protocol):
    """One engine, set up for one device and one set of options; it compiles models."""

    @property
    def requested(self) -> tuple[str, ...]:
        """Providers that the user asked for, by the names that `NodePlacement` uses; the first is the main one."""

    @property
    def limits(self) -> Limits:
        """What the engine accepts."""

    def compile(self, payload: Payload) -> Session:
        """Compile a model.

        Raises
        ------
        UnsupportedModelError
            The engine refuses the model, or the model's placement breaks the ``fallback`` policy.
        """

    def output_type(self, model: ModelProto, name: str) -> TypeProto | None:
        """The type that the engine itself infers for an output without one; None: it cannot tell."""

    def accepts(self, model: ModelProto) -> str | None:
        """None when the engine compiles this (small) model, else its first line of complaint."""


@dataclass(frozen=True)
class Payload:
    """A model on its way to an engine.

    Attributes
    ----------
    loaded : LoadedModel
        As the user gave it.
    adapted : Adapted
        As the engine gets it.
    shapes : mapping of str to tuple of int, or None
        Fixed shapes of the inputs, for engines that compile for them.
    """

    loaded: LoadedModel
    adapted: Adapted
    shapes: Mapping[str, tuple[int, ...]] | None = None

    @property
    def path(self) -> str | None:
        """The file to hand to the engine; None when the model must go as bytes."""
        return str(self.loaded.path) if self.loaded.path is not None and not self.adapted.changes else None

    def bytes(self) -> bytes:
        """The serialized model."""
        if self.loaded.data is not None and not self.adapted.changes:
            return self.loaded.data
        return bytes(self.adapted.proto.SerializeToString())
