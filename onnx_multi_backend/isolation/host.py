# SPDX-License-Identifier: Apache-2.0
"""A model that runs in another process: one process after another, each until it dies."""

from __future__ import annotations

import os
import pickle
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from onnx_multi_backend.errors import EngineCrashedError, RunError
from onnx_multi_backend.isolation.facts import Facts, received
from onnx_multi_backend.isolation.process import Process, how_it_ended
from onnx_multi_backend.running.closed import closed_error
from onnx_multi_backend.running.recipe import Recipe
from onnx_multi_backend.user_warnings import warn

_Taken = TypeVar("_Taken")

_hosts: weakref.WeakSet[Host] = weakref.WeakSet()


class Host:
    """Keeps a process that has a model prepared, and starts another one where it has died.

    Parameters
    ----------
    preset : str
        For messages.
    recipe : Recipe
        What the process prepares.
    limit : float or None
        Seconds that it may take to prepare the model, or to run it once.

    Attributes
    ----------
    facts : Facts
        Of the model.
    recipe : Recipe
    """

    def __init__(self, preset: str, recipe: Recipe, limit: float | None) -> None:
        self.recipe = recipe
        self._preset = preset
        self._limit = limit
        self._lock = threading.RLock()
        self._process: Process | None = None
        self._closed = False
        try:
            self._folder: str | None = os.getcwd()
        except OSError:  # it was removed
            self._folder = None
        self.facts: Facts
        self._known: Facts | None = None
        _hosts.add(self)
        with self._lock:
            self._alive()

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is no process."""
        process = self._process
        return process.pid if process is not None else None

    def run(
        self, feeds: Mapping[str, Any], options: Mapping[str, Any] | None, take: Callable[[list[Any]], _Taken]
    ) -> _Taken:
        """Run the model once.

        Parameters
        ----------
        take : callable
            Takes the results out of the shared memory.

        Raises
        ------
        EngineCrashedError
            The process died; the next run has a new one.
        """
        with self._lock:
            process = self._alive()
            try:
                told = process.outbox.put(list(feeds), list(feeds.values()))
            except OSError as error:
                raise RunError(
                    f"{self._preset}: the inputs cannot be handed to the other process: {error.strerror}. Free some memory, or "
                    "prepare without isolate."
                ) from error
            message = b"r" + told if not options else b"o" + pickle.dumps((dict(options), told))
            answer = self._ask(process, message, lambda: f"ran {self.facts.signature.label} on {_words(feeds)}")
            return take(process.inbox.get(answer))

    def call(self, name: str, *args: Any) -> Any:
        """Ask the prepared model something else."""
        with self._lock:
            told = b"c" + pickle.dumps((name, args))
            answer = self._ask(self._alive(), told, lambda: f"answered {name}")
            return pickle.loads(answer)

    def set_providers(self, names: Sequence[Any], options: Any) -> Facts:
        """Prepare the model on other execution providers, there and wherever it is prepared again."""
        with self._lock:
            facts = received(self.call("set_providers", names, options))
            self.facts = self._known = facts
            self.recipe = replace(self.recipe, providers=facts.providers)
            return facts

    def close(self) -> None:
        """End the process for good."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
            if process is not None:
                process.close()

    def _alive(self) -> Process:
        if self._process is not None:
            return self._process
        label = self._known.signature.label if self._known is not None else "the model"
        if self._closed:
            raise closed_error(self._preset, label)
        if self._known is not None:
            self._known.origin.check_unchanged()
        process = Process(self._folder)
        try:
            answer = self._ask(process, b"p" + pickle.dumps(self.recipe), lambda: f"prepared {label}")
        except BaseException:
            process.kill()
            raise
        self.facts = self._known = received(pickle.loads(answer))
        self._process = process
        return process

    def _ask(self, process: Process, message: bytes, what: Callable[[], str]) -> bytes:
        """The answer without its kind; what the other process raised is raised here."""
        timer = None
        if self._limit is not None:
            timer = threading.Timer(self._limit, process.stop)
            timer.daemon = True
            timer.start()
        try:
            answer = process.ask(message)
            while answer[:1] == b"w":
                for text, category in pickle.loads(answer[1:]):
                    warn(text, category)
                answer = process.hear()
        except EOFError:
            self._process = None
            raise self._obituary(process, what()) from None
        except BaseException:  # Ctrl-C: its answer is not waited for, and must not be taken for another one's
            self._process = None
            process.kill()
            raise
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()
                if process.overdue:  # it may have answered in the last moment
                    self._process = None
        if answer[:1] == b"e":
            error: Exception = pickle.loads(answer[1:])
            raise error
        return answer[1:]

    def _obituary(self, process: Process, what: str) -> EngineCrashedError:
        exit_code = process.exit_code()
        process.kill()
        if process.overdue:
            return EngineCrashedError(
                f"{self._preset}: the process was ended because it took more than {self._limit:g} s while it {what}. "
                "The next run starts a new process; raise time_limit if the model needs longer."
            )
        words, number = how_it_ended(exit_code)
        return EngineCrashedError(
            f"{self._preset}: the engine {words} while it {what}. Results of earlier runs stay valid, and the next run starts a "
            "new process. Another preset may compute it.",
            signal=number,
            exit_code=exit_code,
        )

    def _forget(self) -> None:
        """In a process forked from this one: the other process is not ours."""
        self._lock = threading.RLock()
        process, self._process = self._process, None
        if process is not None:
            process.disown()


def _words(feeds: Mapping[str, Any]) -> str:
    """The inputs by name, dtype and shape."""
    said = [
        f"{name} {value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else f"{name} {type(value).__name__}"
        for name, value in feeds.items()
    ]
    return ", ".join(said) or "no inputs"


def _after_fork() -> None:
    for host in list(_hosts):
        host._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
