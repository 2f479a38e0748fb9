# SPDX-License-Identifier: Apache-2.0
"""What a worker process does."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

from onnx_multi_backend.conformance.backend_ref import BackendRef
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import model_of, official_cases
from onnx_multi_backend.conformance.foreign import message_of, versions_told
from onnx_multi_backend.conformance.suite import Suite
from onnx_multi_backend.conformance.workers.memory import limit_memory, size_text
from onnx_multi_backend.conformance.workers.output import Output


class Ready(NamedTuple):
    """The backend can be used, and this is what it says of its version; or it cannot, and this is why."""

    fault: str = ""
    versions: tuple[tuple[str, str], ...] = ()


def work(ref: BackendRef, connection: Connection, output: str, timeout: float, memory: int | None) -> NoReturn:
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
    memory : int, optional
        The bytes that the process may hold.
    """
    _detach()
    if memory is not None:
        limit_memory(memory)
    printed = Output(output)
    faulthandler.enable(printed.file)
    too_much = f"more memory is needed than the {size_text(memory)} that a process may have" if memory else ""
    try:
        backend = ref.load_for_devices()
        suite = Suite(backend, ref.devices, ref.name, ref.options)
    except Exception as error:  # a foreign backend may raise anything
        hint = f" A process may hold {size_text(memory)}." if memory else ""
        connection.send(Ready((message_of(error) or type(error).__name__) + hint))
    else:
        connection.send(Ready(versions=tuple(versions_told(backend, ref.path).items())))
        with contextlib.suppress(EOFError):  # the parent is gone
            while (name := connection.recv()) is not None:
                printed.renew()
                # The parent ends a case that takes too long; this one works without a parent, and shows where it hung.
                faulthandler.dump_traceback_later(timeout, exit=True, file=printed.file)
                result = suite.run(name)
                faulthandler.cancel_dump_traceback_later()
                if too_much and result.error.startswith("MemoryError"):
                    result = replace(result, reason=too_much)
                connection.send(result)
    os._exit(0)  # an engine's own clean-up at exit may crash, and proves nothing


def describe(connection: Connection) -> NoReturn:
    """Send what is known of every case, by its name without device, in ONNX's order."""
    facts = {name: CaseFacts.of(case.kind, model_of(case)) for name, case in official_cases().items()}
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        connection.send(facts)
    connection.close()
    os._exit(0)


def _detach() -> None:
    """Leave the terminal: its interrupts and its input."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
