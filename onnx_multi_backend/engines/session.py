# SPDX-License-Identifier: Apache-2.0
"""What an engine gets, and what it gives back once it has compiled a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation, Adapted
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.errors import DeviceError, OptionError, RunError, UnsupportedModelError
from onnx_multi_backend.host.devices import CPU
from onnx_multi_backend.models.external_data import with_values
from onnx_multi_backend.models.loading import LoadedModel

if TYPE_CHECKING:
    from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
    from onnx_multi_backend.models.contents import Contents


#: One value at the boundary: an array, a list (sequence), a dict (map), or None (an empty optional).
Value = Any
Feeds = Mapping[str, Value]

_NO_PROVIDERS = "This preset does not run on ONNX Runtime, so it has no execution providers and no profile. Choose OrtCpu, for example."


class RefusedError(Exception):
    """An engine does not take a model; never leaves this package.

    Parameters
    ----------
    words : str
        The engine's own, in one line.
    lacks_kernel : bool
        It says itself that it lacks a kernel: then the model is not to blame.
    lacks_memory : bool
        It says that a tensor is larger than its memory: then no node need be written in another way.
    """

    def __init__(self, words: str, *, lacks_kernel: bool, lacks_memory: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.lacks_kernel = lacks_kernel
        self.lacks_memory = lacks_memory


class NoOtherWayError(UnsupportedModelError):
    """An engine does not take a model, and may end the process with the same model written in another way: none is tried."""


class ProviderFailedError(RunError):
    """A run fails in an execution provider, and would fail again.

    Attributes
    ----------
    cause : str
        What the provider does, with ``{model}`` where the model is named.
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


class Session:
    """A compiled model. Safe from several threads; what `run` returns belongs to the caller.

    An engine has `run` and `placement` to write. The rest is right for one whose results lie in the host's memory.
    """

    @property
    def spoilable(self) -> bool:
        """Whether a run that fails may leave the session such that later ones are wrong."""
        return False

    @property
    def failures(self) -> int:
        """How many have: from the first on another session is to run in its place."""
        return 0

    @property
    def serial(self) -> bool:
        """Whether the engine does its runs one after another, whatever thread they come from."""
        return False

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once; the results stand in the order of the graph's outputs.

        Parameters
        ----------
        run_options : mapping of str to value, or None
            Or an object that `Target.check_run_options` lets pass.
        """
        raise NotImplementedError

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node that was not folded runs."""
        raise NotImplementedError

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """Run once, and leave the results on a device; None: bring them to the host.

        Raises
        ------
        DeviceError
            The session cannot leave results there.
        """
        if not CPU.knows(device):
            raise DeviceError(
                f"output_device={device!r}: the results of this engine lie on the CPU. Leave output_device out."
            )
        return self.run(feeds, run_options)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run that reads these arrays and writes those, for one thread at a time.

        Parameters
        ----------
        outputs : sequence of array
            C-contiguous, one an output, of the dtypes and shapes that `run` returns; None for those not to write.
        """

        def bound() -> None:
            for buffer, result in zip(outputs, self.run(inputs, None), strict=True):
                if buffer is not None:
                    if buffer.shape != result.shape:
                        raise RunError(
                            f"An output has shape {result.shape} by now, and its buffer {buffer.shape}. Bind again, or use run."
                        )
                    buffer[...] = result

        return bound

    @property
    def in_flight(self) -> int:
        """How many runs at once serve throughput best."""
        return 1

    def get_providers(self) -> list[str]:
        """ONNX Runtime's execution providers, by priority.

        Raises
        ------
        OptionError
            The session is not one of ONNX Runtime's.
        """
        raise OptionError(_NO_PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Their options, as ONNX Runtime reports them; raises as `get_providers`."""
        raise OptionError(_NO_PROVIDERS)

    def end_profiling(self) -> str:
        """End ONNX Runtime's profile, and return the name of its file; raises as `get_providers`."""
        raise OptionError(_NO_PROVIDERS)


@dataclass(frozen=True)
class Built:
    """A session, and how it came about.

    Attributes
    ----------
    session : Session
    adaptations : tuple of Adaptation
        What was changed in the model while it was compiled.
    facts : mapping of str to JSON value, or None
        What `Target.restore` needs beside the files that were written for it; None where none were.
    fallback : str
        The `FallbackWarning` that is due if this session is the one that is used; empty where none is.
    """

    session: Session
    adaptations: tuple[Adaptation, ...] = ()
    facts: Mapping[str, Any] | None = None
    fallback: str = ""

    def after(self, changes: Sequence[Adaptation]) -> Built:
        """The same session of a model that was changed before it was compiled."""
        return replace(self, adaptations=(*changes, *self.adaptations))


class Caching(NamedTuple):
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
        if self.loaded.path is None or self.adapted.changes or (self.loaded.beside and not self.loaded.mapped):
            return None
        return str(self.loaded.path)

    def changed(self, model: ModelProto, *changes: Adaptation, inserted: Collection[str] = ()) -> Payload:
        """The same with another model, which the changes led to; `inserted` names the nodes that are new."""
        adapted = replace(
            self.adapted,
            proto=model,
            changes=(*self.adapted.changes, *changes),
            inserted=self.adapted.inserted.union(inserted),
        )
        return replace(self, adapted=adapted)

    def after(self, mend: Callable[[Contents], Rewritten | None]) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The same after a pass over the model, and what that changed."""
        made = mend(self.adapted.facts.contents)
        if made is None:
            return self, ()
        return self.changed(made.model, *made.changes, inserted=made.added), made.changes

    def whole(self) -> ModelProto:
        """The model with all its weights, those in other files too: for an engine that takes one piece."""
        model = self.loaded.whole(self.adapted.proto)
        return model if self.loaded.path is None else with_values(model, self.loaded.path.parent, copied=False)

    def bytes(self) -> bytes:
        """The serialized model; what lies in other files than its own stays there."""
        if self.loaded.data is not None and not self.adapted.changes:
            return self.loaded.data
        return bytes(self.loaded.whole(self.adapted.proto).SerializeToString())
