# SPDX-License-Identifier: Apache-2.0
"""One model's way to sessions: adapted once, compiled for each target and each set of shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from onnx_multi_backend.adapt import Adaptation, Adapted, adapt
from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.passes.input_shapes import Shape, with_input_shapes
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.engines.compiling import compile_model
from onnx_multi_backend.engines.made_empty import makes_nothing
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.session import Built, Payload, Session
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.engines.wrappers.coded import coded
from onnx_multi_backend.engines.wrappers.renewed import renewed
from onnx_multi_backend.engines.wrappers.spared import SparedSession
from onnx_multi_backend.errors import FallbackWarning
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.models.origin import Origin
from onnx_multi_backend.sessions.known_inputs import NO_VALUES, Shapes, Values, deciding, with_shapes, with_values
from onnx_multi_backend.sessions.reshaped_nothing import tell_sizes
from onnx_multi_backend.sessions.signature import Signature, signature
from onnx_multi_backend.user_warnings import warn

_IN_ORDER = Adaptation("node_order", "", "nodes put behind those whose outputs they read", "ONNX asks for it")
_FOR_NOTHING = Adaptation("input_shapes", "", "inputs have the shapes of a run", "an input has no elements")
_FOR_A_RUN = Adaptation(
    "input_shapes", "", "inputs have the shapes of a run", "the engine refuses the model while they are open"
)


class Maker(Protocol):
    """What makes the sessions of one model."""

    signature: Signature

    def for_nothing(self, target: Target, shapes: Shapes) -> Session | None:
        """Make one for inputs of these shapes, of which one has no elements; None where that needs no other."""

    def for_shapes(self, target: Target, shapes: Shapes, values: Values = NO_VALUES) -> Built:
        """Make one of the model whose inputs have these shapes, and single integers these values, which the engine knows from the start."""

    def deciding(self) -> frozenset[str]:
        """The inputs that decide which branches run, by the engine's names."""

    @property
    def origin(self) -> Origin:
        """The model's files by their stamps."""

    def __call__(self, target: Target, shapes: Shapes | None = None) -> Built:
        """Make one, for fixed input shapes where they are given."""


class _Ready(NamedTuple):
    """A model as the user gave it, and as an engine gets it."""

    loaded: LoadedModel
    adapted: Adapted


class SessionMaker:
    """Makes sessions of one model.

    The model is let go after the first session, since it may hold the weights, and loaded again for another one; only
    where more sessions are sure to come is it kept.

    Parameters
    ----------
    loaded : LoadedModel
        Checked.
    limits : Limits
        What the model is adapted to.
    adapts : bool
        Whether it may be changed at all.
    fixed_shapes : bool
        Whether each new shape of a dynamic input needs a session.
    input_shapes : mapping of str to tuple
        Shapes that the user fixes inputs to.
    changes : tuple of Adaptation
        What was changed in the model already.

    Attributes
    ----------
    signature : Signature
    origin : Origin
        The model's files by their stamps.
    external_files : list of str
        Those that hold weights of the model, relative to its folder.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        limits: Limits,
        *,
        adapts: bool,
        fixed_shapes: bool,
        input_shapes: Mapping[str, Shape] = MappingProxyType({}),
        changes: tuple[Adaptation, ...] = (),
    ) -> None:
        self._changes = changes
        self._limits = limits
        self._input_shapes = input_shapes
        self._adapts = adapts
        self._source = loaded.source
        self.origin = loaded.origin
        self.external_files = loaded.external_files if loaded.beside else []
        ready = self._adapt(loaded)
        self._ready: _Ready | None = ready
        self.signature: Signature = signature(*ready)
        self._keep = fixed_shapes and self.signature.dynamic

    def __call__(self, target: Target, shapes: Shapes | None = None, *, keep_in: Path | None = None) -> Built:
        """Compile the model, for fixed input shapes where they are given.

        Parameters
        ----------
        target : Target
        shapes : mapping of str to tuple of int, optional
        keep_in : Path, optional
            An empty folder, to write what makes the session again.

        Raises
        ------
        UnsupportedModelError
            The engine cannot run it.
        InvalidModelError
            The model is not valid, or its file was changed meanwhile.
        """
        return self._lasting(self.plain(target, shapes, keep_in), lambda: self.plain(target, shapes), target, shapes)

    def plain(self, target: Target, shapes: Shapes | None, keep_in: Path | None = None) -> Built:
        """As a call, without what takes over from the session where it fails."""
        ready = self._ready
        if ready is None:
            ready = self._adapt(self._reload())
        elif self._keep:
            self.origin.check_unchanged()
        else:
            self._ready = None
        loaded, adapted = ready
        built = compile_model(target, Payload(loaded, adapted, shapes, lowering=self._adapts, keep_in=keep_in))
        if self.origin.beside:
            self.origin = self.origin.linked()
            if self._ready is not None:
                self._ready = _Ready(loaded.linked(), adapted)
        return coded(built.after(adapted.changes), adapted.strings)

    def for_nothing(self, target: Target, shapes: Shapes) -> Session | None:
        """The session for inputs of these shapes, of which one has no elements; None where the target gets such rightly.

        Raises
        ------
        InvalidModelError
            The model's file was changed meanwhile.
        UnsupportedModelError
            The engine cannot run it with these shapes.
        """
        loaded = self._unchanged()
        model = with_shapes(loaded.proto, self._engine_name, shapes)
        if not tell_sizes(model) and not makes_nothing(model, target.wrong_in_empty_runs):
            return None

        def build(of: Target, loaded: LoadedModel) -> Built:
            return self._knowing(loaded, _FOR_NOTHING, shapes).plain(of, None)

        def make(of: Target) -> Session:
            return self._lasting(build(of, loaded), lambda: build(of, self._unchanged()), of, shapes).session

        try:
            return make(target)
        except MisplacedError:
            if (spare := target.spare) is None:
                raise
        warn(
            f"{target.preset}: {target.requested[0]} takes no node of {self.signature.label} where an input has no elements. "
            f"Such runs are on {spare.requested[0]}.",
            FallbackWarning,
        )
        return make(spare)

    def for_shapes(self, target: Target, shapes: Shapes, values: Values = NO_VALUES) -> Built:
        """Compile the model with what is known of a run's inputs written into it, for an engine that refuses it while that is open.

        Parameters
        ----------
        target : Target
        shapes : mapping of str to tuple of int
        values : mapping of str to int
            What single integers are.

        Raises
        ------
        InvalidModelError
            The model's file was changed meanwhile.
        UnsupportedModelError
            The engine cannot run it with these shapes either.
        """

        def build() -> Built:
            return self._knowing(self._unchanged(), _FOR_A_RUN, shapes, values).plain(target, None)

        return self._lasting(build(), build, target, shapes)

    def _knowing(
        self, loaded: LoadedModel, change: Adaptation, shapes: Shapes, values: Values = NO_VALUES
    ) -> SessionMaker:
        """What makes one session of a model with what is known of a run's inputs written into it."""
        model = with_shapes(loaded.proto, self._engine_name, shapes)
        tell_sizes(model)
        model = with_values(model, self._engine_name, values)
        known = replace(loaded, proto=model, skeleton=None)
        return SessionMaker(known, self._limits, adapts=self._adapts, fixed_shapes=False, changes=(change,))

    def deciding(self) -> frozenset[str]:
        """The inputs from which conditions of branches and loops are computed, by the engine's names."""
        return frozenset(map(self._engine_name, deciding(self._unchanged().proto)))

    def _engine_name(self, name: str) -> str:
        """The engine's name of an input."""
        edges = self.signature.input_boundary_types
        return edges[name].engine_name if name in edges else name

    def _lasting(self, built: Built, again: Callable[[], Built], target: Target, shapes: Shapes | None) -> Built:
        """The session, with what takes over where a run fails and spoils it, or cannot be run on it at all."""
        built = renewed(built, again)
        return built if (spare := target.spare) is None else self._spared(built, target, spare, shapes)

    def _spared(self, built: Built, target: Target, spare: Target, shapes: Shapes | None) -> Built:
        """The session, with another one in reserve: that of the model as the user gave it, compiled when it is needed."""

        def words(cause: str) -> str:
            told = cause.format(model=self.signature.label)
            return f"{target.preset}: {target.requested[0]} {told}. All of it runs on {spare.requested[0]} from now on."

        return replace(built, session=SparedSession(built.session, lambda: self(spare, shapes).session, words))

    def _adapt(self, loaded: LoadedModel) -> _Ready:
        unsorted = loaded.reordered and not (self._limits.sorts_nodes and loaded.is_plain)
        fixed = (*self._changes, _IN_ORDER) if unsorted else self._changes
        if self._input_shapes:
            proto, shaped = with_input_shapes(loaded.proto, self._input_shapes, loaded.label)
            loaded, fixed = replace(loaded, proto=proto, skeleton=None), (*fixed, *shaped)
        proto, contents = loaded.proto, loaded.contents
        adapted = adapt(proto, self._limits, loaded.path, contents) if self._adapts else untouched(proto, contents)
        return _Ready(loaded, replace(adapted, changes=(*fixed, *adapted.changes)) if fixed else adapted)

    def _unchanged(self) -> LoadedModel:
        loaded = self._ready.loaded if self._ready is not None else self._reload()
        self.origin.check_unchanged()
        return loaded

    def _reload(self) -> LoadedModel:
        fresh = load(self._source)
        self.origin.check_unchanged()
        return fresh.in_order() if self.origin.reordered else fresh
