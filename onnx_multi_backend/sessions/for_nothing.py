# SPDX-License-Identifier: Apache-2.0
"""Sessions for runs whose inputs have no elements, such as a batch of 0, where the engine gets results without elements wrong.

The model is compiled for the shapes of such a run: what has no elements is known then, and made without the engine's operators.
"""

from __future__ import annotations

from threading import Lock
from typing import Protocol

from onnx_multi_backend.engines.session import Session
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import InvalidModelError, OnnxMultiBackendError, RunError
from onnx_multi_backend.sessions.known_inputs import Shapes

#: Sessions that are kept at once; the one made first goes first.
_KEPT = 2
#: Shapes of which it is remembered that they are refused.
_REMEMBERED = 256


class _Maker(Protocol):
    def for_nothing(self, target: Target, shapes: Shapes) -> Session | None:
        """The session for inputs of these shapes; None where the target gets their results right."""


class SessionsForNothing:
    """The sessions for the shapes of such runs. Safe from several threads.

    Parameters
    ----------
    make : SessionMaker or CachingSessionMaker
    target : Target
    """

    def __init__(self, make: _Maker, target: Target) -> None:
        self._make, self._target = make, target
        self._lock = Lock()
        self._right: set[frozenset[tuple[str, int]]] = set()
        self._kept: dict[frozenset[tuple[str, tuple[int, ...]]], Session] = {}
        self._refused: dict[frozenset[tuple[str, tuple[int, ...]]], str] = {}

    def get(self, shapes: Shapes) -> Session | None:
        """The session for inputs of these shapes, by the engine's names; None where the plain one does.

        Raises
        ------
        RunError
            The model's file was changed meanwhile, or the engine has no right results for these shapes.
        """
        empty = frozenset((name, axis) for name, shape in shapes.items() for axis, size in enumerate(shape) if not size)
        key = frozenset(shapes.items())
        with self._lock:
            if empty in self._right:  # a language model's empty cache, beside prompts of any length
                return None
            if key in self._refused:
                raise RunError(self._refused[key])
            if key not in self._kept:
                try:
                    made = self._make.for_nothing(self._target, shapes)
                except InvalidModelError as error:
                    raise RunError(
                        f"Inputs without elements need the model once more, and it is not to be had: {error}"
                    ) from error
                except OnnxMultiBackendError as error:
                    words = (
                        f"Inputs without elements would end the process, or come out wrong, and are refused: {error}"
                    )
                    if len(self._refused) < _REMEMBERED:
                        self._refused[key] = words
                    raise RunError(words) from error
                if made is None:
                    self._right.add(empty)
                    return None
                self._kept[key] = made
                while len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]
            return self._kept[key]
