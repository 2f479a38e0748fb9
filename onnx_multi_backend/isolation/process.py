# SPDX-License-Identifier: Apache-2.0
"""One process that runs a model, seen from the one that started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import weakref
from multiprocessing import spawn

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.isolation import area
from onnx_multi_backend.isolation.area import Area
from onnx_multi_backend.isolation.parcels import Inbox, Outbox
from onnx_multi_backend.isolation.pipe import Pipe

#: Not multiprocessing's ways to start one: those run the user's main module again, or copy a process that has threads.
#: Ctrl-C is for the user's process, which then ends this one.
_CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "import importlib; importlib.import_module(sys.argv[3]).main(*json.loads(sys.argv[2]))"
)

#: Seconds that a process gets to end by itself.
_GRACE = 2.0


class Process:
    """A process that answers messages.

    Parameters
    ----------
    folder : str or None
        The folder that it works in.
    server : str
        A module whose ``main(parent, inputs, outputs)`` answers, see `serving`.

    Attributes
    ----------
    outbox : Outbox
        For what it gets. It shares memory with it, except where a descriptor cannot be handed on.
    inbox : Inbox
        For what it gives back.
    overdue : bool
        It was stopped because it took too long.
    """

    def __init__(self, folder: str | None, server: str = "onnx_multi_backend.isolation.child") -> None:
        executable = spawn.get_executable()
        if not executable:
            raise OptionError(
                f"{option_words.given('isolate', True)} starts a Python interpreter, and sys.executable, its path, is empty in this process."
            )
        shares = os.name == "posix"
        descriptors = [area.make() for _ in range(2)] if shares else []
        handed = descriptors if shares else [None, None]
        try:
            self._popen = subprocess.Popen(
                [executable, "-c", _CODE, json.dumps(sys.path), json.dumps([os.getpid(), *handed]), server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                pass_fds=descriptors,
            )
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._pipe = Pipe(self._popen.stdout.fileno(), self._popen.stdin.fileno())
        areas = [Area(descriptor) for descriptor in descriptors]
        self.outbox, self.inbox = Outbox(areas[0] if areas else None), Inbox(areas[1] if areas else None)
        self.overdue = False
        self._end = weakref.finalize(self, _end, self._popen, areas, os.getpid())

    @property
    def pid(self) -> int:
        """Its id."""
        return self._popen.pid

    def ask(self, message: bytes) -> bytes:
        """Send a message, and wait for the answer.

        Raises
        ------
        EOFError
            The process has died.
        """
        try:
            self._pipe.send(message)
        except BrokenPipeError as error:
            raise EOFError from error
        return self._pipe.receive()

    def hear(self) -> bytes:
        """Wait for another message. Raises EOFError."""
        return self._pipe.receive()

    def stop(self) -> None:
        """Kill it because it takes too long."""
        self.overdue = True
        self._popen.kill()

    def exit_code(self) -> int | None:
        """How it ended: the negative number of a signal, or its exit status; None where it closed its streams and lives."""
        try:
            return self._popen.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it at once."""
        self._popen.kill()
        self._end()

    def close(self) -> None:
        """Let it end."""
        self._end()

    def disown(self) -> None:
        """Forget it, in a process that was forked from the one it belongs to."""
        self._end()


def _end(popen: subprocess.Popen[bytes], areas: list[Area], owner: int) -> None:
    for stream in (popen.stdin, popen.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    if os.getpid() == owner:
        try:
            popen.wait(_GRACE)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
    else:
        popen.returncode = 0  # it is the other process's to wait for
    for shared in areas:
        shared.close()


def how_it_ended(exit_code: int | None) -> tuple[str, int | None]:
    """The end of a process in words, and the signal's number if there was one."""
    if exit_code is None:
        return "closed its streams", None
    if exit_code >= 0:
        return f"ended the process with exit status {exit_code}", None
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"ended the process with {name}", -exit_code
