# SPDX-License-Identifier: Apache-2.0
"""A session that is fed codes for strings, and whose codes become strings again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_multi_backend.adapt.passes.codes import MOST_CODES, StringCodes
from onnx_multi_backend.engines.session import Built, Feeds, Session, Value
from onnx_multi_backend.engines.wrappers.checked import CheckedSession
from onnx_multi_backend.errors import InputError, RunError


def coded(built: Built, strings: StringCodes | None) -> Built:
    """The session of a model that was written with codes, for strings; its facts hold them too."""
    if strings is None or not (strings.inputs or strings.outputs):
        return built
    facts = None if built.facts is None else {**built.facts, "strings": strings}
    return replace(built, session=CodedSession(built.session, strings), facts=facts)


def restored(built: Built, kept: Sequence[Any] | None) -> Built:
    """The session out of a cache, as `coded` made it."""
    return built if kept is None else coded(built, StringCodes(*kept))


class CodedSession(CheckedSession):
    """Gives each string of a run a code. Those that the model does not hold have theirs for that run alone, so nothing grows.

    Parameters
    ----------
    session : Session
    strings : StringCodes
    """

    def __init__(self, session: Session, strings: StringCodes) -> None:
        super().__init__(session, ())
        self._words = np.array([*strings.words], object)
        self._codes = {word: code for code, word in enumerate(strings.words)}
        self._inputs, self._outputs = frozenset(strings.inputs), frozenset(strings.outputs)

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Encode, run and decode."""
        feeds, words = self._encoded(feeds)
        return self._decoded(self._run(feeds, run_options), words)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        feeds, words = self._encoded(feeds)
        return self._decoded(self._session.run_to_device(feeds, run_options, device), words)

    def _encoded(self, feeds: Feeds) -> tuple[Feeds, np.ndarray[Any, Any]]:
        """The feeds with codes, and the strings of this run by their codes."""
        known, new = self._codes, dict[str, int]()
        first = len(known)

        def encode(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return None if value is None else [encode(part) for part in value]
            codes = [known[w] if w in known else new.setdefault(w, first + len(new)) for w in value.flat]
            return np.array(codes, np.int32).reshape(value.shape)

        made = {name: encode(value) if name in self._inputs else value for name, value in feeds.items()}
        if first + len(new) > MOST_CODES:
            raise InputError(
                f"The inputs and the model hold {first + len(new)} different strings, and the engine distinguishes {MOST_CODES}. Pass "
                "fewer at once, or choose an ONNX Runtime preset."
            )
        return made, np.concatenate([self._words, np.array([*new], object)]) if new else self._words

    def _decoded(self, results: Sequence[Value], words: np.ndarray[Any, Any]) -> list[Value]:
        return [_decode(value, words) if i in self._outputs else value for i, value in enumerate(results)]


def _decode(value: Value, words: np.ndarray[Any, Any]) -> Value:
    if not isinstance(value, np.ndarray):
        return None if value is None else [_decode(part, words) for part in value]
    flat = value.reshape(-1)
    if flat.size and not 0 <= int(flat.min()) <= int(flat.max()) < len(words):
        raise RunError(
            "The engine returned a code that is not one of a string: its result is wrong. Choose an ONNX Runtime preset."
        )
    return words[flat].reshape(value.shape)
