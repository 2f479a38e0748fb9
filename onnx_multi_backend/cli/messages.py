# SPDX-License-Identifier: Apache-2.0
"""Errors, warnings and notes: one line each, on stderr, so that stdout holds the answer alone."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from onnx_multi_backend import option_words
from onnx_multi_backend.cli.console import console, harmless, one_line

#: The option that any command takes, anywhere on its line.
DEBUG = "--debug"

#: The exit code of a command that was interrupted.
INTERRUPTED = 130

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def say(kind: str, text: str) -> None:
    """Write ``kind: text`` on one line of stderr; the terminal may wrap it, nothing truncates it."""
    line = Text.assemble((f"{kind}:", _STYLES.get(kind, "dim")), " ", harmless(one_line(text)))
    console(stderr=True).print(line, soft_wrap=True)


@contextlib.contextmanager
def shown(*, debug: bool) -> Iterator[None]:
    """Show Python's warnings and the package's log as `say` does, for a while; messages name options as they are written here."""
    logger = logging.getLogger("onnx_multi_backend")
    level, handler = logger.level, _Lines(logging.DEBUG if debug else logging.WARNING)
    logger.addHandler(handler)
    if debug:
        logger.setLevel(logging.DEBUG)
    try:
        with option_words.of_command_line(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say("warning", str(message))


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {logging.Formatter().formatException(record.exc_info)}"
            console(stderr=True).print(Text(harmless(f"{record.levelname.lower()}: {text}")), soft_wrap=True)
        else:
            say(record.levelname.lower(), text)
