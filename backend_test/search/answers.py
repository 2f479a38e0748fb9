# SPDX-License-Identifier: Apache-2.0
"""What an engine makes of a model and its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: How an attempt can end. `refused`: an exception, of our own types where a preset was asked.
RESULT, REFUSED, UNTYPED, DEAD, HANG, MEMORY, NONE = "result refused untyped dead hang memory none".split()
#: An end that the engine's process does not survive.
FATAL = (DEAD, HANG, MEMORY)

#: What stands for an output that is none: an empty optional.
EMPTY = None


@dataclass
class Answer:
    """One engine's answer.

    Attributes
    ----------
    kind : str
        One of the constants of this module.
    runs : list of list
        The outputs of each run; fewer than asked for where one failed.
    error : str
        The exception's type and message, or the signal.
    place : str
        Where it failed: ``prepare`` or ``run``.
    warnings : list of str
        Those of the package itself.
    where : str
        The innermost function of the package that an untyped exception came through.
    """

    kind: str
    runs: list[list[Any]] = field(default_factory=list)
    error: str = ""
    place: str = ""
    warnings: list[str] = field(default_factory=list)
    where: str = ""

    def __str__(self) -> str:
        text = f"{self.kind}{f' at {self.place}' if self.place else ''}"
        return f"{text}: {self.error}" if self.error else text


def describe(error: BaseException) -> str:
    """An exception's type and the beginning of its message, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"


def raised_in(error: BaseException) -> str:
    """The innermost function of the package that an exception came through, as ``adapt/lowering.py:lower``."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        _, package, path = code.co_filename.rpartition("onnx_multi_backend/")
        if package:
            found = f"{path}:{code.co_name}"
        trace = trace.tb_next
    return found


def summary(value: Any) -> str:
    """An output in a few words."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(summary(x) for x in value[:4])}]"
    if not isinstance(value, np.ndarray):
        return repr(value)[:80]
    numbers = ", ".join(str(x) for x in value.ravel()[:12])
    return f"{value.dtype}{list(value.shape)} {numbers}{' …' if value.size > 12 else ''}"
