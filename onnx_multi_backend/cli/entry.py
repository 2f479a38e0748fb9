# SPDX-License-Identifier: Apache-2.0
"""The way in, and the way out: every error is one line and an exit code."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

from onnx_multi_backend import early_interrupt
from onnx_multi_backend.cli import messages
from onnx_multi_backend.cli.app import app
from onnx_multi_backend.early_interrupt import PROGRAM
from onnx_multi_backend.errors import OnnxMultiBackendError

WRONG = 2


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit: 0 as asked, 1 it ran and the answer is no, 2 an error, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process when None.
    """
    early_interrupt.tell()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no name costs a report because a terminal cannot write it
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = messages.DEBUG in given
    given = [word for word in given if word != messages.DEBUG] or ["--help"]
    with messages.shown(debug=debug):
        try:
            code = app(given, prog_name=PROGRAM, standalone_mode=False)
        except (typer.Abort, KeyboardInterrupt):
            messages.say("error", "interrupted.")
            code = messages.INTERRUPTED
        except Exception as error:
            if debug:
                traceback.print_exception(error)
            messages.say("error", _explain(error, debug=debug))
            code = WRONG
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception, *, debug: bool) -> str:
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else PROGRAM
        words = error.format_message().replace("Value error, ", "")  # pydantic's, which typer lets through
        return f"{words}{'' if words.endswith(('.', '?', ')')) else '.'} See '{path} --help'."
    if isinstance(error, OnnxMultiBackendError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"'{error.filename}': {error.strerror}."
    hint = "" if debug else f" {messages.DEBUG} shows where; please report it."
    return f"a fault of {PROGRAM}: {type(error).__name__}: {error}.{hint}"
