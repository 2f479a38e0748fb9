# SPDX-License-Identifier: Apache-2.0
"""One worker process, seen from the parent: what it is at, and how it ended."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import onnx_multi_backend
from onnx_multi_backend.conformance.backend_ref import BackendLoadError, BackendRef
from onnx_multi_backend.conformance.cases import Case, environment
from onnx_multi_backend.conformance.interrupts import uninterrupted
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.conformance.workers.child import Ready, work

#: What the process imports that workers are forked from.
PRELOADED = ["onnx_multi_backend.conformance.workers.preload"]
#: Seconds that importing a backend may take.
_LOADING = 300.0
#: Seconds that a worker gets to end itself, beyond the time of its case.
_GRACE = 5.0
#: The exit status that the worker's own timer gives it.
_TIMER = 1
#: The last bytes of what a dead worker had printed.
_LAST_WORDS = 2000


class Worker:
    """A process that runs one case at a time.

    Attributes
    ----------
    case : Case or None
        The one it is at.
    alive : bool
    versions : mapping of str to str
        What the backend says of its name and version, once it is loaded.
    """

    def __init__(self, ref: BackendRef, timeout: float, context: Any, memory: int | None = None) -> None:
        self.case: Case | None = None
        self.alive = True
        self.versions: Mapping[str, str] = {}
        self.connection: Connection
        self._name = ref.name
        self._timeout = timeout
        self._ready = False
        self._started = time.monotonic()
        self._deadline = self._started + _LOADING
        handle, output = tempfile.mkstemp(prefix="onnx-conformance-", suffix=".txt")
        os.close(handle)
        self._output = Path(output)
        self.connection, theirs = context.Pipe()
        # Not a daemon, which may start no processes of its own; so it has to be ended before Python waits for it.
        self._process = context.Process(target=work, args=(ref, theirs, output, timeout, memory), daemon=False)
        atexit.register(self.end)
        self._process.start()
        theirs.close()

    @property
    def idle(self) -> bool:
        """Whether it waits for a case."""
        return self._ready and self.case is None

    @property
    def time_left(self) -> float:
        """Seconds until it must have answered."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def signs(self) -> tuple[Connection, int]:
        """What `multiprocessing.connection.wait` has to watch: an answer, and the end of the process.

        The connection alone does not tell the end, while a process that the backend started holds its other side.
        """
        return self.connection, self._process.sentinel

    def load(self) -> None:
        """Wait until the backend is loaded.

        Raises
        ------
        BackendLoadError
            The backend could not be loaded.
        """
        while not self._ready:
            wait(self.signs, self.time_left)
            self.answer()

    def give(self, case: Case) -> None:
        """Have a case run."""
        self.case = case
        self._started = time.monotonic()
        self._deadline = self._started + self._timeout + _GRACE
        with contextlib.suppress(BrokenPipeError):  # it has died meanwhile: its connection will show it
            self.connection.send(case.name)

    def answer(self) -> CaseResult | None:
        """Return what came of the case, None while there is nothing to tell. Call it when there may be an answer.

        Raises
        ------
        BackendLoadError
            The backend could not be loaded.
        """
        died = not self._process.is_alive()  # asked first: what it said before it died is in the connection by now
        try:
            message = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            return self._died()
        if message is None:
            return self._died() if died else self._give_up() if not self.time_left else None
        if isinstance(message, Ready):
            if message.fault:
                self.end()
                raise BackendLoadError(message.fault)
            self._ready, self.versions = True, dict(message.versions)
            return None
        assert isinstance(message, CaseResult)
        self.case = None
        return message

    def end(self) -> None:
        """Stop the process, and whatever it has started."""
        if not self.alive:
            return
        self.alive = False
        if self._process.pid is not None:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()
        self.connection.close()
        self._output.unlink(missing_ok=True)
        atexit.unregister(self.end)

    def _give_up(self) -> CaseResult:
        self._process.kill()
        return self._died(stopped=True)

    def _died(self, *, stopped: bool = False) -> CaseResult:
        took = time.monotonic() - self._started
        self._process.join(_GRACE)  # not for ever: it may have closed the connection, and live on
        last_words = self._last_words()
        exit_code = self._process.exitcode
        self.end()
        how = how_it_ended(exit_code)
        if self.case is None:
            what = f"loading it took more than {_LOADING:g} s" if stopped else f"loading it ended the process ({how})"
            raise BackendLoadError(f"{self._name!r}: {what}. {last_words}".rstrip())
        case, self.case = self.case, None
        label, reason = Label.CRASH, f"the process died: {how}"
        if stopped or (exit_code == _TIMER and took >= self._timeout):
            label, reason = Label.TIMEOUT, f"stopped after {self._timeout:g} s"
        return CaseResult(
            self._name, case.name, case.kind, label, reason, duration_ms=round(took * 1e3, 3), error=last_words
        )

    def _last_words(self) -> str:
        return self._output.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip()


def how_it_ended(exit_code: int | None) -> str:
    """Name the signal that ended a process, or its exit status; None: it has not ended."""
    if exit_code is None:
        return "it closed its connection"
    if exit_code < 0:
        try:
            return signal.Signals(-exit_code).name
        except ValueError:
            return f"signal {-exit_code}"
    return f"exit status {exit_code}"


_forks = False


def fork_workers() -> None:
    """Have workers forked from this process, which has ONNX's cases in memory and has loaded no engine.

    `multiprocessing`'s start method does not tell: starting the server makes "fork" of one that nobody has chosen.
    """
    global _forks
    _forks = True


def make_context() -> Any:
    """Choose how workers start: from a process that has ONNX's cases in memory, where there is such a thing."""
    if _forks:
        return multiprocessing.get_context("fork")
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    # It imports the preloaded module before it learns the parent's sys.path, and says nothing where it cannot.
    here = str(Path(onnx_multi_backend.__file__).parents[1])
    given = os.environ.get("PYTHONPATH")
    paths = os.pathsep.join([here, given] if given else [here])
    # Ctrl-C goes to that process too, which has nothing to say about it while it imports.
    with environment("PYTHONPATH", paths), uninterrupted(signal.SIGINT):
        forkserver.ensure_running()
    return context
