# SPDX-License-Identifier: Apache-2.0
"""One model's way to sessions: adapted once, compiled for each target and each set of shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation, adapt
from onnx_multi_backend.adapt.input_shapes import Shape, with_input_shapes
from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.engines.compiling import compile_model
from onnx_multi_backend.engines.session import Built, Payload
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.sessions.signature import Signature, signature

_IN_ORDER = Adaptation("node_order", "", "nodes put behind those whose outputs they read", "ONNX asks for it")


class Maker(Protocol):
    """What makes the sessions of one model."""

    signature: Signature

    @property
    def origin(self) -> LoadedModel:
        """The model's files by their stamps; it has no graph."""

    def __call__(self, target: Target, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Built:
        """Make one, for fixed input shapes where they are given."""


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

    Attributes
    ----------
    signature : Signature
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
    ) -> None:
        self._limits = limits
        self._input_shapes = input_shapes
        self._adapts = adapts
        self._source = loaded.source
        self._origin = replace(loaded, proto=ModelProto(), data=None)  # enough to tell whether its files are the same
        self.external_files = loaded.external_files
        payload = self._make(loaded)
        self._payload: Payload | None = payload
        self.signature: Signature = signature(payload.loaded, payload.adapted)
        self._keep = fixed_shapes and self.signature.dynamic

    @property
    def origin(self) -> LoadedModel:
        """The model's files by their stamps: `LoadedModel.check_unchanged` holds them to it. It has no graph."""
        return self._origin

    def __call__(
        self, target: Target, shapes: Mapping[str, tuple[int, ...]] | None = None, *, keep_in: Path | None = None
    ) -> Built:
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
        payload = self._payload
        if payload is None:
            payload = self._make(self._reload())
        elif self._keep:
            payload.loaded.check_unchanged()
        else:
            self._payload = None
        built = compile_model(target, replace(payload, shapes=shapes, keep_in=keep_in))
        if self._origin.beside:
            self._origin = self._origin.linked()
            if self._keep and self._payload is not None:
                self._payload = replace(self._payload, loaded=self._payload.loaded.linked())
        return built.after(payload.adapted.changes)

    def _make(self, loaded: LoadedModel) -> Payload:
        fixed: tuple[Adaptation, ...] = (_IN_ORDER,) if loaded.reordered else ()
        if self._input_shapes:
            proto, shaped = with_input_shapes(loaded.proto, self._input_shapes, loaded.label)
            loaded, fixed = replace(loaded, proto=proto), (*fixed, *shaped)
        proto = loaded.proto
        adapted = adapt(proto, self._limits, loaded.path) if self._adapts else untouched(proto)
        if fixed:
            adapted = replace(adapted, changes=(*fixed, *adapted.changes))
        return Payload(loaded, adapted, lowering=self._adapts)

    def _reload(self) -> LoadedModel:
        fresh = load(self._source)
        self._origin.check_unchanged()
        return fresh.in_order() if self._origin.reordered else fresh
