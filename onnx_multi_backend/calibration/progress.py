# SPDX-License-Identifier: Apache-2.0
"""Bars on stderr that show how far a calibration or quantization is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

_Item = TypeVar("_Item")


class Progress:
    """Shows bars where stderr is a terminal; elsewhere nothing.

    Parameters
    ----------
    shown : bool
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty()

    @contextmanager
    def each(self, title: str, items: Iterable[_Item], total: int | None = None) -> Iterator[Iterator[_Item]]:
        """Show one bar while items are gone through; what is yielded moves it with each."""

        def stepping(step: Callable[[], None]) -> Iterator[_Item]:
            for item in items:
                yield item
                step()

        with self.bar(title, total) as step:
            yield stepping(step)

    @contextmanager
    def bar(self, title: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Show one bar; what is yielded moves it by one.

        Parameters
        ----------
        title : str
        total : int, optional
            How many steps there will be; None: nobody knows.
        """
        if not self._shown:
            yield lambda: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda: bars.advance(task)
