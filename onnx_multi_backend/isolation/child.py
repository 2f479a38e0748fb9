# SPDX-License-Identifier: Apache-2.0
"""The process that a model runs in: it prepares the model, and answers until the other end of its pipe is closed."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

from onnx_multi_backend.errors import RunError
from onnx_multi_backend.isolation import serving
from onnx_multi_backend.isolation.area import Area
from onnx_multi_backend.isolation.facts import Facts, facts_of
from onnx_multi_backend.isolation.parcels import Inbox, Outbox
from onnx_multi_backend.isolation.pipe import Pipe
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.running.recipe import Recipe, prepare_again

#: What may be asked beside a run.
_CALLS = frozenset({"placement", "get_providers", "get_provider_options", "set_providers", "end_profiling"})


def main(parent: int, inputs: int | None, outputs: int | None) -> None:
    """Serve the process that has the other ends of the standard streams.

    Parameters
    ----------
    parent : int
        Its id.
    inputs, outputs : int or None
        Descriptors of the memory that inputs and outputs pass through.
    """
    pipe = serving.pipe_of_streams(parent)
    server = _Server(pipe, *(Area(descriptor) if descriptor is not None else None for descriptor in (inputs, outputs)))
    serving.serve(pipe, server.answer)


class _Server:
    def __init__(self, pipe: Pipe, inputs: Area | None, outputs: Area | None) -> None:
        self._pipe = pipe
        self._inbox, self._outbox = Inbox(inputs), Outbox(outputs)
        self._names: list[str] = []
        self._prepared: PreparedModel
        self._warned: list[tuple[str, type[Warning]]] = []
        self._answers: dict[bytes, Callable[[bytes], bytes]] = {
            b"p": self._prepare,
            b"r": self._run,
            b"o": self._run_with_options,
            b"c": self._call,
        }
        warnings.simplefilter("always")  # which of them are shown is decided by the filters of the user's process
        warnings.showwarning = self._heard

    def _heard(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        self._warned.append((str(message), category))

    def answer(self, message: bytes) -> bytes:
        try:
            told = self._answers[message[:1]](message[1:])
        except Exception as error:  # whatever it is, it is reported to the user's process
            told = b"e" + serving.pickled(error)
        if self._warned:
            self._pipe.send(b"w" + pickle.dumps(self._warned))
            self._warned = []
        return told

    def _prepare(self, told: bytes) -> bytes:
        recipe: Recipe = pickle.loads(told)
        self._prepared = prepare_again(recipe)
        self._names = [output.name for output in self._prepared.get_outputs()]
        return b"v" + pickle.dumps(facts_of(self._prepared))

    def _run(self, told: bytes) -> bytes:
        return self._results(self._prepared.run(self._inbox.named(told)))

    def _run_with_options(self, told: bytes) -> bytes:
        options, feeds = pickle.loads(told)
        return self._results(self._prepared.run(self._inbox.named(feeds), run_options=options))

    def _results(self, results: tuple[Any, ...]) -> bytes:
        try:
            return b"r" + self._outbox.put(self._names, results)
        except OSError as error:
            raise RunError(
                f"The results cannot be handed over: {error.strerror}. Free some memory, or prepare without isolate."
            ) from error

    def _call(self, told: bytes) -> bytes:
        name, args = pickle.loads(told)
        assert name in _CALLS
        result = getattr(self._prepared, name)(*args)
        facts: Facts | None = facts_of(self._prepared) if name == "set_providers" else None
        return b"v" + pickle.dumps(facts if facts is not None else result)


if __name__ == "__main__":
    main(*(int(text) if text != "-" else None for text in sys.argv[1:4]))  # type: ignore[arg-type]
