# SPDX-License-Identifier: Apache-2.0
"""A session that looks at its inputs before each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.engines.session import Feeds, Session, Value
from onnx_multi_backend.engines.wrappers.delegating import DelegatingSession


class CheckedSession(DelegatingSession):
    """Checks some inputs of each run, and hands it to the session behind.

    Parameters
    ----------
    session : Session
    checks : sequence of (str, callable)
        The names of inputs, and what looks at their values: it raises, warns, or does nothing.
    """

    def __init__(self, session: Session, checks: Sequence[tuple[str, Callable[[Any], None]]]) -> None:
        super().__init__(session)
        self._run = session.run
        self._checks = checks

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Check the inputs, and run."""
        for name, check in self._checks:
            check(feeds.get(name))
        return self._run(feeds, run_options)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        for name, check in self._checks:
            if name in feeds:
                check(feeds[name])
        return self._session.run_to_device(feeds, run_options, device)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run that checks the buffers first."""
        run = self._session.bind(inputs, outputs)
        checks = [(check, inputs[name]) for name, check in self._checks if name in inputs]

        def bound() -> None:
            for check, array in checks:
                check(array)
            run()

        return bound
