# SPDX-License-Identifier: Apache-2.0
"""What a worker process does."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

from onnx_multi_backend.conformance.backend_ref import BackendRef
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import model_of, official_cases
from onnx_multi_backend.conformance.suite import Suite


class Ready(NamedTuple):
    """The backend is loaded; or it is not, and this is why."""

    fault: str = ""


def work(ref: BackendRef, connection: Connection, output: str, timeout: float) -> NoReturn:
    """Run the cases whose names come in, and send the results.

    Parameters
    ----------
    ref : BackendRef
    connection : Connection
        Brings names, and None at the end; takes `Ready`, then a CaseResult for each name.
    output : str
        The file that gets what the backend prints. It holds the last case's only.
    timeout : float
        Seconds after which a case ends the process.
    """
    _detach(output)
    faulthandler.enable()
    try:
        suite = Suite(ref.load(), ref.devices, ref.name, ref.options)
    except Exception as error:  # a foreign backend may raise anything
        connection.send(Ready(str(error) or type(error).__name__))
    else:
        connection.send(Ready())
        with contextlib.suppress(EOFError):  # the parent is gone
            while (name := connection.recv()) is not None:
                _forget_output()
                # The parent ends a case that takes too long; this one works without a parent, and tells where it hung.
                faulthandler.dump_traceback_later(timeout, exit=True)
                result = suite.run(name)
                faulthandler.cancel_dump_traceback_later()
                connection.send(result)
    os._exit(0)  # an engine's own clean-up at exit may crash, and proves nothing


def describe(connection: Connection) -> NoReturn:
    """Send what is known of every case, by its name without device, in ONNX's order."""
    connection.send({name: CaseFacts.of(case.kind, model_of(case)) for name, case in official_cases().items()})
    connection.close()
    os._exit(0)


def _detach(output: str) -> None:
    """Leave the terminal: its interrupts, its input, its output."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to_file = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(to_file, stream)
    os.close(to_file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _forget_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.ftruncate(2, 0)
