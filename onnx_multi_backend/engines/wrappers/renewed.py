# SPDX-License-Identifier: Apache-2.0
"""A session that is made anew once a failed run has spoiled it.

OpenVINO (2025.4 to 2026.4) keeps sizes that a failed run left behind: a later, valid run then fails as well, or returns memory that was
never written. A convolution of CUDA keeps them too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from onnx_multi_backend.engines.session import Built, Feeds, Session, Value
from onnx_multi_backend.engines.wrappers.delegating import DelegatingSession
from onnx_multi_backend.errors import OnnxMultiBackendError, RunError

_Made = TypeVar("_Made")


def renewed(built: Built, again: Callable[[], Built]) -> Built:
    """The session, or one that is made anew each time a failed run has spoiled it, where one may."""
    if not built.session.spoilable:
        return built
    return replace(built, session=RenewedSession(built.session, lambda: again().session))


class RenewedSession(DelegatingSession):
    """Runs on a session until a run on it fails and spoils it, then on a new one.

    A run during which another thread's spoiled the session is done again: its results may be wrong. Where the engine does one run at a
    time, the next one begins when it is known whether the one before spoiled the session.

    Parameters
    ----------
    session : Session
    make : callable
        Makes another one of the same model.
    """

    def __init__(self, session: Session, make: Callable[[], Session]) -> None:
        super().__init__(session)
        self._make = make
        self._renewing = threading.RLock()
        # A signal handler may run the model within a run of its thread.
        self._turn: AbstractContextManager[Any] = threading.RLock() if session.serial else nullcontext()

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run on a session that is not spoiled."""
        return self._done(lambda session: session.run(feeds, run_options))

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        return self._done(lambda session: session.run_to_device(feeds, run_options, device))

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers; it is bound anew where the session is spoiled meanwhile."""
        bound_to = self._renewed(self._session)
        run = bound_to.bind(inputs, outputs)

        def do(session: Session) -> None:
            nonlocal bound_to, run
            if session is not bound_to:
                bound_to, run = session, session.bind(inputs, outputs)
            run()

        return partial(self._done, do)

    def _done(self, do: Callable[[Session], _Made]) -> _Made:
        """What a run makes on a session that it, and others beside it, leave as it was."""
        while True:
            with self._turn:
                session = self._session
                if session.failures:
                    session = self._renewed(session)
                try:
                    made = do(session)
                except RunError:
                    if session.failures > 1:  # another thread's failed too, and may be why
                        continue
                    raise
                if not session.failures:
                    return made

    def _renewed(self, session: Session) -> Session:
        """The session, or the one in its place where it is spoiled."""
        if not session.failures:
            return session
        with self._renewing:
            if self._session.failures:  # no other thread was quicker
                try:
                    self._session = self._make()
                except OnnxMultiBackendError as error:
                    raise RunError(
                        f"An earlier run failed and left the session in an unknown state, and it cannot be made anew: {error} "
                        "Prepare the model again."
                    ) from error
            return self._session
