# SPDX-License-Identifier: Apache-2.0
"""What every engine gives back once it has compiled a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation, Adapted
from onnx_multi_backend.adapt.engine import Engine
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.single_node import Facts
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.placement import NodePlacement

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

#: One value at the boundary: an array, a list (sequence), a dict (map), or None (an empty optional).
Value = Any
Feeds = Mapping[str, Value]


class RefusedError(Exception):
    """An engine does not take a model; never leaves this package.

    Parameters
    ----------
    words : str
        The engine's own, in one line.
    lacks_kernel : bool
        It says itself that it lacks a kernel: then the model is not to blame.
    """

    def __init__(self, words: str, *, lacks_kernel: bool) -> None:
        super().__init__(words)
        self.words = words
        self.lacks_kernel = lacks_kernel


class Session(Protocol):
    """A compiled model. Safe from several threads; what `run` returns belongs to the caller.

    Attributes
    ----------
    adaptations : tuple of Adaptation
        What was changed in the model while it was compiled.
    facts : mapping of str to JSON value, or None
        What `Target.restore` needs beside the files that were written for it; None where none were. With "useless" alone: why
        the model cannot be kept.
    """

    adaptations: tuple[Adaptation, ...]
    facts: Mapping[str, Any] | None

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once; the results stand in the order of the graph's outputs."""

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """Run once, and leave the results on a device; None: bring them to the host.

        Raises
        ------
        DeviceError
            The session cannot leave results there.
        """

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run that reads these arrays and writes those, for one thread at a time.

        Parameters
        ----------
        outputs : sequence of array
            C-contiguous, one an output, of the dtypes and shapes that `run` returns; None for those not to write.
        """

    @property
    def in_flight(self) -> int:
        """How many runs at once serve throughput best."""

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node that was not folded runs."""


class Keeping(NamedTuple):
    """How the sessions of a target are kept in a cache.

    Attributes
    ----------
    kind : str
        One of `cache.kinds.KINDS`.
    engine : str
        With its version.
    parts : tuple
        What else decides about a session, beside the model and the shapes; see `cache.make_key`.
    """

    kind: str
    engine: str
    parts: tuple[object, ...]


class Target(Engine, Protocol):
    """One engine, set up for one device and one set of options; it compiles models."""

    @property
    def requested(self) -> tuple[str, ...]:
        """Providers that the user asked for, by the names that `NodePlacement` uses; the first is the main one."""

    @property
    def preset(self) -> str:
        """The preset's name, for messages."""

    @property
    def narrows(self) -> bool:
        """Whether wide integers are computed in int32, and float64 in float32, by one of `requested`."""

    @property
    def precision_policy(self) -> str:
        """``"warn"`` or ``"strict"``: what happens where they are."""

    def suspects(self, node: NodeProto, facts: Facts) -> bool:
        """Whether `distrusts` may have something to say about a node; told from the node alone."""

    def deadly(self, model: ModelProto) -> list[tuple[NodeProto, str]]:
        """The nodes that end the engine's process, as far as constants tell, and why."""

    def askings(self, *, taken: bool) -> Sequence[tuple[Engine, Engine]]:
        """The ways to ask which nodes must be rewritten: whom for those of the model, and whom for those in their place.

        Parameters
        ----------
        taken : bool
            The engine took the model as it is, and runs no node of it where it was asked to.
        """

    def build(self, payload: Payload) -> Session:
        """Compile a model as it is; see `compiling.compile_model`.

        Raises
        ------
        RefusedError
            The engine refuses the model.
        UnsupportedModelError
            The model's placement breaks the ``fallback`` policy.
        """

    def keeping(self) -> Keeping | None:
        """How its sessions are kept; None: they cannot be."""

    def restore(self, entry: Entry, facts: Mapping[str, Any]) -> Session:
        """Make a session of what an earlier one wrote.

        Raises
        ------
        RefusedError
            The engine does not take it.
        """

    def explain(self, payload: Payload, refused: RefusedError) -> OnnxMultiBackendError:
        """Say which nodes the engine lacks, and why."""

    def adopt(self, value: Any) -> Any:
        """Take over an array that lies on a device where this engine can read it; None for any other."""

    def for_throughput(self) -> Target:
        """The same target, tuned for many runs at once; itself where there is nothing to tune."""

    def output_type(self, model: ModelProto, name: str) -> TypeProto | None:
        """The type that the engine itself infers for an output without one; None: it cannot tell."""


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
    lowering : bool
        Whether nodes that the engine lacks may be rewritten.
    keep_in : Path or None
        Where to write what `Target.restore` needs; an empty folder.
    patience : Patience
        How long to look into it once it is refused.
    """

    loaded: LoadedModel
    adapted: Adapted
    shapes: Mapping[str, tuple[int, ...]] | None = None
    lowering: bool = False
    keep_in: Path | None = None
    patience: Patience = field(default_factory=Patience)

    @property
    def path(self) -> str | None:
        """The file to hand to the engine; None when the model must go as bytes."""
        if self.loaded.path is None or self.adapted.changes or (self.loaded.external and not self.loaded.mapped):
            return None
        return str(self.loaded.path)

    def bytes(self) -> bytes:
        """The serialized model; what lies in other files than its own stays there."""
        if self.loaded.data is not None and not self.adapted.changes:
            return self.loaded.data
        return bytes(self.loaded.whole(self.adapted.proto).SerializeToString())
