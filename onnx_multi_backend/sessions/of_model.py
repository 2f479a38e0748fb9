# SPDX-License-Identifier: Apache-2.0
"""The sessions of one prepared model, and which of them runs given inputs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from onnx_multi_backend.engines.session import Built, Feeds, Session
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import OnnxMultiBackendError, RunError, UnsupportedModelError
from onnx_multi_backend.sessions.maker import Maker

if TYPE_CHECKING:
    from onnx_multi_backend.sessions.by_shape import SessionsByShape
    from onnx_multi_backend.sessions.for_nothing import SessionsForNothing

_ARRAYS = np.ndarray


class SessionsOfModel:
    """One session for inputs of all shapes, or one for each set of shapes, and others for what it cannot run. Safe from several threads.

    Parameters
    ----------
    preset : str
        For messages.
    make : Maker
    target : Target
    adapts : bool
        Whether the model may be adapted: inputs without elements then get sessions of their own, where the engine gets these wrong.

    Attributes
    ----------
    make : Maker
    target : Target
    session : Session
        Runs inputs of all shapes; where each set of shapes has a session, the first of them.
    only : Session or None
        Runs whatever is given; None where that depends on the inputs, which `for_feeds` looks at.
    by_shape : SessionsByShape or None
        The sessions for sets of shapes, where one cannot run all.
    many : Session or None
        The one for several runs at once, once it is needed.
    closed : bool
    """

    session: Session

    def __init__(self, preset: str, make: Maker, target: Target, *, adapts: bool) -> None:
        self.target = target
        self.only: Session | None = None
        self.by_shape: SessionsByShape | None = None
        self.many: Session | None = None
        self.make: Any = make  # the closed session, once the model is closed
        self._preset, self._signature = preset, make.signature
        self._adapts = adapts
        self._fixes_shapes = False  # in the model, before the engine sees it
        self._for_empty: SessionsForNothing | None = None
        self._may_be_empty = False
        self.closed = False
        self._lock = threading.Lock()

    def begin(self, example: Callable[[], Feeds] | None, *, fixed_shapes: bool) -> Built:
        """Make the first session: for inputs of all shapes, or for the example's where the engine wants to know them.

        Parameters
        ----------
        example : callable or None
            Gives inputs by the engine's names, where these decide.
        fixed_shapes : bool
            Whether each set of shapes is to have a session of its own.
        """
        if fixed_shapes and self._signature.dynamic:
            self.by_shape = self._sessions_by_shape()
            built = self.make(self.target) if example is None else self.by_shape.for_feeds(example())
        else:
            built = self._built(example)
        self._use(built.session)
        return built

    def _built(self, example: Callable[[], Feeds] | None) -> Built:
        try:
            built: Built = self.make(self.target)
            return built
        except UnsupportedModelError as error:
            if not self._signature.dynamic or not self.target.wants_shapes(str(error)):
                raise
            if example is None:
                from onnx_multi_backend.sessions.open_shapes import with_cure

                raise with_cure(error) from error
        self._fixes_shapes = True
        self.by_shape = self._sessions_by_shape()
        return self.by_shape.for_feeds(example())

    def _use(self, session: Session) -> None:
        self.session, self._for_empty = session, None
        self._may_be_empty = self._adapts and self._signature.dynamic and self.by_shape is None
        self.only = session if self.by_shape is None and not self._may_be_empty else None

    @property
    def compiles_in_runs(self) -> bool:
        """Whether the engine compiles what it is given while it runs, so that a first run makes later ones faster."""
        return self.by_shape is None or self._fixes_shapes

    def for_feeds(self, feeds: Feeds) -> Session:
        """The session for these inputs: a new one where it is for their shapes, and they are new."""
        by_shape = self.by_shape
        if by_shape is None:  # it was closed, or empty inputs alone have a session of their own
            return self.for_nothing(feeds) or self.session
        try:
            return by_shape.for_feeds(feeds).session
        except OnnxMultiBackendError as error:
            if not self._fixes_shapes:
                raise
            raise RunError(
                f"{self._preset} cannot run {self._signature.label} on inputs of these shapes: {error}"
            ) from error

    def for_nothing(self, feeds: Feeds) -> Session | None:
        """The session for inputs of which one has no elements; None where there is none, or it needs no other."""
        if not self._may_be_empty:
            return None
        for value in feeds.values():
            if isinstance(value, _ARRAYS) and not value.size:
                break
        else:
            return None
        with self._lock:
            if self._for_empty is None and not self.closed:
                if self._signature.operators.isdisjoint(self.target.wrong_in_empty_runs):
                    self._may_be_empty, self.only = False, self.session
                    return None
                from onnx_multi_backend.sessions.for_nothing import SessionsForNothing

                self._for_empty = SessionsForNothing(self.make, self.target)
            sessions = self._for_empty
        if sessions is None:
            return None
        from onnx_multi_backend.sessions.by_shape import shapes_of

        return sessions.get(shapes_of(feeds))

    def for_many(self) -> Session:
        """The session for several runs at once."""
        with self._lock:
            if self.many is None:
                target = self.target.for_throughput()
                self.many = self.session if target == self.target else self.make(target).session
            return self.many

    def binder(self, session: Any, feeds: Feeds) -> Any:
        """What binds a session for these inputs."""
        by_shape = self.by_shape  # another thread may close the model
        return session if by_shape is None else by_shape.binder(session, feeds)

    def _sessions_by_shape(self) -> SessionsByShape:
        who = f"{self._preset} compiled {self._signature.label}"
        if self._fixes_shapes:
            from onnx_multi_backend.sessions.open_shapes import SessionsForRuns

            return SessionsForRuns(self.make, self.target, who)
        from onnx_multi_backend.sessions.by_shape import SessionsByShape, logged

        return SessionsByShape(logged(functools.partial(self.make, self.target), who))

    def move(self, target: Target) -> Built:
        """Make a session of another target, and go on with it."""
        built: Built = self.make(target)
        with self._lock:
            if not self.closed:  # meanwhile, by another thread
                self.target, self.many = target, None
                if self.by_shape is not None:
                    self.by_shape = self._sessions_by_shape()
                self._use(built.session)
        return built

    def close(self, closed: Any) -> None:
        """Let go of all of them; `closed` stands in their place."""
        with self._lock:
            self.closed = True
            self.make = self.session = self.only = self.many = closed
            self.by_shape = self._for_empty = None
