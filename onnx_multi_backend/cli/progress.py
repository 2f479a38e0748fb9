# SPDX-License-Identifier: Apache-2.0
"""How far a run of the suite is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from onnx_multi_backend.cli.console import PAUSE, console, on_terminal
from onnx_multi_backend.cli.messages import say
from onnx_multi_backend.conformance import CaseResult, Label, Observer, Plan


def counts(labels: Mapping[Label, int]) -> str:
    """``1507 native, 31 fail``, in the order of `Label`."""
    return ", ".join(f"{labels[label]} {label}" for label in Label if labels.get(label)) or "nothing yet"


class RunProgress(Observer):
    """Shows on stderr how far the run is."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        text = "collecting ONNX's cases, which takes some seconds"
        self._waiting = console(stderr=True).status(text) if on_terminal(stderr=True) else None
        if self._waiting is not None:
            self._waiting.start()
        else:
            say("note", text)

    def collected(self) -> None:
        """The waiting for ONNX's cases is over."""
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def started(self, plan: Plan, total: int) -> None:
        self.collected()
        self._title, self._total = plan.backend.name, total
        self._labels: Counter[Label] = Counter()
        self._started = self._told = time.monotonic()
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
            self._task = self._bar.add_task(self._title, total=total, labels="")
            self._bar.start()

    def result(self, result: CaseResult) -> None:
        self._labels[result.label] += 1
        done = self._labels.total()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, labels=counts(self._labels))
        elif (now := time.monotonic()) - self._told >= PAUSE:
            self._told = now
            text = (
                f"{self._title}: {done} of {self._total} cases in {now - self._started:.0f} s: {counts(self._labels)}"
            )
            console(stderr=True).print(text)

    def finished(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
