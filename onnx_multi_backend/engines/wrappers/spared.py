# SPDX-License-Identifier: Apache-2.0
"""A session that another one takes over from, once a run meets what its execution provider does not take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.engines.session import Feeds, ProviderFailedError, Session, Value
from onnx_multi_backend.engines.wrappers.delegating import DelegatingSession
from onnx_multi_backend.errors import FallbackWarning, OnnxMultiBackendError
from onnx_multi_backend.user_warnings import warn


class SparedSession(DelegatingSession):
    """Runs on the first session; from the first `ProviderFailedError` on, that run included, on another.

    The first session would fail again: the shape of a tensor without elements is fixed, and so are the names of results. All that a session tells,
    its placement too, is of the one that the next run is for.

    Parameters
    ----------
    session : Session
    make : callable
        Makes the other one, when it is needed.
    words : callable
        Makes the warning's from the error's cause.
    """

    def __init__(self, session: Session, make: Callable[[], Session], words: Callable[[str], str]) -> None:
        super().__init__(session)
        self._first = session
        self._make, self._words = make, words
        self._lock = threading.Lock()

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run, on the other session where the first one cannot."""
        try:
            return self._session.run(feeds, run_options)
        except ProviderFailedError as error:
            return self._other(error).run(feeds, run_options)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        try:
            return self._session.run_to_device(feeds, run_options, device)
        except ProviderFailedError as error:
            return self._other(error).run_to_device(feeds, run_options, device)

    def _other(self, error: ProviderFailedError) -> Session:
        if self._session is self._first:
            try:
                made = self._make()
            except OnnxMultiBackendError as refused:
                raise error from refused
            with self._lock:
                if was_first := self._session is self._first:  # no other thread was quicker
                    self._session = made
            if was_first:
                warn(self._words(error.cause), FallbackWarning)
        return self._session

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on the session that runs by now."""
        return self._session.bind(inputs, outputs)
