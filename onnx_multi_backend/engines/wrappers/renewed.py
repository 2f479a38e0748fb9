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
from typing import Any

from onnx_multi_backend.engines.session import Built, Feeds, Session, Value
from onnx_multi_backend.engines.wrappers.delegating import DelegatingSession
from onnx_multi_backend.errors import OnnxMultiBackendError, RunError


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
        while True:
            with self._turn:
                session = self._session
                if session.failures:
                    session = self._renewed(session)
                try:
                    results = session.run(feeds, run_options)
                except RunError:
                    if session.failures > 1:  # another thread's failed too, and may be why
                        continue
                    raise
                if not session.failures:
                    return results

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        while True:
            with self._turn:
                session = self._renewed(self._session)
                try:
                    results = session.run_to_device(feeds, run_options, device)
                except RunError:
                    if session.failures > 1:
                        continue
                    raise
                if not session.failures:
                    return results

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers; it is bound anew where the session is spoiled meanwhile."""
        session = self._renewed(self._session)
        run = session.bind(inputs, outputs)

        def bound() -> None:
            nonlocal session, run
            while True:
                with self._turn:
                    if session.failures:
                        session = self._renewed(self._session)
                        run = session.bind(inputs, outputs)
                    try:
                        run()
                    except RunError:
                        if session.failures > 1:
                            continue
                        raise
                    if not session.failures:
                        return

        return bound

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
