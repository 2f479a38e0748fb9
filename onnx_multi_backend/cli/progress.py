# SPDX-License-Identifier: Apache-2.0
"""How far a suite is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from onnx_multi_backend.cli.console import console, on_terminal
from onnx_multi_backend.cli.messages import say
from onnx_multi_backend.conformance import CaseResult, Label

#: Seconds between two lines, where there is no terminal.
_PAUSE = 15.0


def counts(labels: Counter[Label]) -> str:
    """``1507 native, 31 fail``, in the order of `Label`."""
    return ", ".join(f"{labels[label]} {label}" for label in Label if labels[label]) or "nothing yet"


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say on stderr what is waited for."""
    if on_terminal(stderr=True):
        with console(stderr=True).status(text):
            yield
    else:
        say("note", text)
        yield


class SuiteProgress:
    """Shows on stderr how far the suite of one preset is. A context manager; `advance` with each result."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._labels: Counter[Label] = Counter()
        self._bar: Progress | None = None
        self._started = self._told = time.monotonic()

    def __enter__(self) -> SuiteProgress:
        if on_terminal(stderr=True):
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[labels]}"),
                console=console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._title, total=self._total, labels="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, result: CaseResult) -> None:
        """Count a result."""
        self._labels[result.label] += 1
        done = self._labels.total()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, labels=counts(self._labels))
        elif (now := time.monotonic()) - self._told >= _PAUSE:
            self._told = now
            text = (
                f"{self._title}: {done} of {self._total} cases in {now - self._started:.0f} s: {counts(self._labels)}"
            )
            console(stderr=True).print(text)
