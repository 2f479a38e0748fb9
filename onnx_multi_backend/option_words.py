# SPDX-License-Identifier: Apache-2.0
"""How a message names an option: ``adapt=False`` in a call, ``--option adapt=false`` on the command line.

A message is made far from where it is shown, often in another process, and becomes a part of others. So what it names options with is chosen
where it is made: as the command line has it while the command runs, in the processes too that it starts.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

#: Set while the command runs. Processes inherit it.
_VARIABLE = "ONNX_MULTI_BACKEND_COMMAND_RUNS"

#: Options that are one of the command's own; all others are given with ``--option NAME=VALUE``.
_FLAGS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "device",
        "fallback",
        "max_drop",
        "max_error",
        "metric",
        "min_cosine",
        "preset",
        "static_shapes",
        "target",
    )
} | {"input_example": "--input", "shapes": "--shape"}


class Placeholder(str):
    """What stands for a value that the user chooses: ``preset=NAME``."""

    __slots__ = ()


@contextlib.contextmanager
def of_command_line() -> Iterator[None]:
    """Name options as the command line has them, for a while."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def named(name: str) -> str:
    """An option without a value: ``min_cosine``, or ``--min-cosine``."""
    return _FLAGS.get(name, f"--option {name}") if _VARIABLE in os.environ else name


def given(name: str, value: Any) -> str:
    """An option with a value: ``fallback='full'``, or ``--fallback full``."""
    if _VARIABLE not in os.environ:
        return f"{name}={literal(value)}"
    if name not in _FLAGS:
        return f"--option {_quoted(f'{name}={json_or_word(value)}', value)}"
    return _FLAGS[name] if value is True else f"{_FLAGS[name]} {_quoted(json_or_word(value), value)}"


def literal(value: Any) -> str:
    """A value as the user writes it: ``False``, or ``false``."""
    if isinstance(value, Placeholder):
        return value
    return json_or_word(value) if _VARIABLE in os.environ else repr(value)


def json_or_word(value: Any) -> str:
    """A value as ``--option`` reads it: text as it is where that is not JSON of something else; all else as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _quoted(word: str, value: Any) -> str:
    import shlex

    return word if isinstance(value, Placeholder) else shlex.quote(word)
