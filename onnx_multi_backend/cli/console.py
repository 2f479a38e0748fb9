# SPDX-License-Identifier: Apache-2.0
"""What is printed: laid out for a terminal's width, or plain and never cut where it goes to a pipe or a file."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

#: Seconds between two lines of how far something is, where there is no terminal.
PAUSE = 15.0


def on_terminal(*, stderr: bool = False) -> bool:
    """Whether a person reads the stream. Colours are rich's business: NO_COLOR and FORCE_COLOR hold."""
    stream = sys.stderr if stderr else sys.stdout
    return stream is not None and stream.isatty()  # a stream that was closed is None


def console(*, stderr: bool = False) -> Console:
    """A console on the stream that is there now; nothing in a text is taken for markup."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not on_terminal(stderr=stderr))
    if made.width < 1:  # COLUMNS=0 tells nothing, and rich would print nothing
        made.width = shutil.get_terminal_size().columns
    return made


def width() -> int:
    """The columns of the terminal; 0 where no person reads it."""
    return console().width if on_terminal() else 0


def one_line(text: str) -> str:
    """A text with every run of white space made one space."""
    return " ".join(text.split())


def harmless(text: str) -> str:
    """A text with its control characters written out: what a file holds must not steer the terminal."""
    return (
        text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    )


@contextlib.contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Tell on stderr what takes its time: at once while a person reads it, else now and then as it goes on.

    Yields
    ------
    callable
        Takes further words, how far it is.
    """
    if on_terminal(stderr=True):
        with console(stderr=True).status(harmless(text)) as status:
            yield lambda words: status.update(harmless(f"{text}: {words}"))
        return
    told = time.monotonic()

    def line(words: str) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= PAUSE:
            told = now
            console(stderr=True).print(harmless(f"{text}: {words}"))

    yield line


def heading(text: str) -> None:
    """Print a heading."""
    console().print(Text(harmless(text), "bold"))


def line(text: str = "", *, indent: int = 0) -> None:
    """Print a line; on a terminal one that is too long goes on under its own indent."""
    text = harmless(text)
    if on_terminal():
        console().print(Padding(Text(text), (0, 0, 0, indent)) if indent else Text(text))
    else:
        console().print(" " * indent + text)


def facts(rows: Sequence[tuple[str, str]], *, indent: int = 2) -> None:
    """Print names and values in two columns."""
    rows = [(harmless(name), harmless(value)) for name, value in rows]
    width = max((len(name) for name, _ in rows), default=0) + 2
    if on_terminal():
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(Text(name), Text(value))
        console().print(Padding(grid, (0, 0, 0, indent)))
        return
    for name, value in rows:
        console().print(f"{'':{indent}}{name:{width}}{value}")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: one row a line in a pipe, so that ``grep`` and ``awk`` can read it."""
    headers, rows = [*map(harmless, headers)], [[*map(harmless, row)] for row in rows]
    if on_terminal():
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for header in headers:
            grid.add_column(Text(header), overflow="fold")
        for row in rows:
            grid.add_row(*map(Text, row))
        console().print(grid)
        return
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console().print("  ".join(cells).rstrip())


def as_json(content: Any) -> None:
    """Print JSON, for programs."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    sys.stdout.write("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text) + "\n")


def shorten(items: Sequence[str], limit: int = 10) -> str:
    """List items, the first few of them."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
