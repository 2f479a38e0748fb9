# SPDX-License-Identifier: Apache-2.0
"""A model that an engine refuses while sizes of its inputs are open, as where a squeezed axis decides how many axes there are.

It is compiled for the shapes of a run; where these do not decide which branches run, for single integers that do too, such as a sample rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from onnx_multi_backend.engines.session import Built, Feeds, Value
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import OpenShapesError, RunError, UnsupportedModelError
from onnx_multi_backend.sessions.by_shape import SessionsByShape, logged, shapes_of
from onnx_multi_backend.sessions.known_inputs import Values
from onnx_multi_backend.sessions.maker import Maker

_CURE = (
    "The sizes of its inputs are open, and it may run once they are known: pass input_example=inputs, and the model is compiled for "
    "the shapes of each run; or fix them with input_shapes={name: shape}."
)


def with_cure(refusal: UnsupportedModelError) -> OpenShapesError:
    """The engine's refusal, and what to do about it."""
    words = str(refusal).partition(" Choose a")[0]
    return OpenShapesError(f"{words} {_CURE}", operators=refusal.operators, reasons=refusal.reasons)


class SessionsForRuns(SessionsByShape):
    """The sessions for the inputs seen last. Safe from several threads.

    Parameters
    ----------
    make : Maker
    target : Target
    who : str
        Begins a line in the log for each compilation.
    """

    def __init__(self, make: Maker, target: Target, who: str) -> None:
        super().__init__(logged(partial(make.for_shapes, target), who))
        self._make = make
        self._deciding: frozenset[str] | None = None  # None as long as shapes are enough

    def for_feeds(self, feeds: Feeds) -> Built:
        """The session for these inputs, by the engine's names.

        Raises
        ------
        UnsupportedModelError
            The engine cannot run the model with them.
        """
        if self._deciding is not None:
            return self.get(shapes_of(feeds), self._values(feeds, self._deciding))
        try:
            return super().for_feeds(feeds)
        except UnsupportedModelError:
            deciding = self._make.deciding()
            if not (values := self._values(feeds, deciding)):
                raise
        built = self.get(shapes_of(feeds), values)
        self._deciding = deciding
        return built

    def binder(self, session: Any, feeds: Feeds) -> Any:
        """What binds the session for these inputs: a bound run in which others decide is refused."""
        values = self._values(feeds, self._deciding or frozenset())
        return _Binder(session, values) if values else session

    def _values(self, feeds: Feeds, deciding: frozenset[str]) -> dict[str, int]:
        return {name: int(value.item()) for name, value in feeds.items() if name in deciding and _is_single(value)}


class _Binder:
    """A session that was compiled for some values of inputs."""

    def __init__(self, session: Any, values: Values) -> None:
        self._session, self._values = session, values

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers; see `Session.bind`."""
        run, known = self._session.bind(inputs, outputs), [(name, inputs[name], v) for name, v in self._values.items()]

        def bound() -> None:
            for name, buffer, value in known:
                if buffer.item() != value:
                    raise RunError(
                        f"Input {name!r} decides which branches run: the model was bound for {value}, and it is {buffer.item()} now. "
                        "Bind the model again."
                    )
            run()

        return bound


def _is_single(value: Value) -> bool:
    """Whether an input is a single integer or boolean."""
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iub"
