# SPDX-License-Identifier: Apache-2.0
"""The options of presets, as data: names, allowed values, defaults."""

from __future__ import annotations

import inspect
import numbers
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.placement import FALLBACKS
from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.host.cpus import MOST_THREADS
from onnx_multi_backend.host.devices import similar

REQUIRED: Any = inspect.Parameter.empty

#: The largest size of a dimension.
_LARGEST = 2**63 - 1

#: Returns the value in its final form, or raises OptionError.
Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Option:
    """One option of a preset.

    Attributes
    ----------
    name : str
    check : callable
        Takes the name and the value; returns the value in its final form or raises.
    default : object
        `REQUIRED` where there is none.
    doc : str
        One line for help texts.
    positional : bool
        Whether the constructor takes it by position.
    """

    name: str
    check: Check
    default: Any = None
    doc: str = ""
    positional: bool = True

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The values that it may have; None where they are not a short list."""
        if isinstance(self.check, OneOf):
            return self.check.choices
        return (False, True) if self.check is flag else None


@dataclass(frozen=True)
class OneOf:
    """A check for one of some words."""

    choices: tuple[str, ...]

    def __call__(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or value not in self.choices:
            near = similar(value, self.choices) if isinstance(value, str) else ""
            raise OptionError(f"{name} is one of {', '.join(map(repr, self.choices))}; {value!r} was given.{near}")
        return value


def one_of(*allowed: str) -> Check:
    """A check for one of some words."""
    return OneOf(allowed)


def anything(name: str, value: Any) -> Any:
    """No check here: the value is checked where it is used."""
    return value


def flag(name: str, value: Any) -> bool:
    """A check for True or False."""
    if not isinstance(value, bool):
        raise OptionTypeError(
            f"{name} is {option_words.literal(True)} or {option_words.literal(False)}; {value!r} was given."
        )
    return value


def threads(name: str, value: Any) -> int | None:
    """A check for a number of threads; With None the engine chooses."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise OptionTypeError(f"{name} is a number of threads or {option_words.literal(None)}; {value!r} was given.")
    if value < 1:
        raise OptionError(
            f"{name} is at least 1; {value} was given. With {option_words.literal(None)} the engine chooses."
        )
    if int(value) > MOST_THREADS:
        raise OptionError(f"{name} is at most {MOST_THREADS}; {value} was given, and no machine has as many cores.")
    return int(value)


def provider_options(name: str, value: Any) -> dict[str, str]:
    """A check for a mapping of provider option names to values; values become the words that providers read."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise OptionTypeError(f"{name} is a mapping of option names to values; {value!r} was given.")
    if none := [k for k, v in value.items() if v is None]:
        raise OptionTypeError(f"{name} has no value for {', '.join(none)}: None was given. Leave the option out.")
    return {k: str(v) for k, v in value.items()}


def cache_dir(name: str, value: Any) -> Any:
    """A check for a folder, False (never) or None (the default)."""
    if value is None or value is False:
        return value
    if isinstance(value, (str, os.PathLike)):
        folder = os.path.expanduser(os.fspath(value))
        if "\0" in str(folder):
            raise OptionError(f"{name} is a folder, and no folder's name holds a null byte; {value!r} was given.")
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise OptionError(f"{name} is a folder; {folder!r} is a file.")
        return folder
    raise OptionTypeError(
        f"{name} is a folder, {option_words.literal(False)} (never) or {option_words.literal(None)} (the default); {value!r} was given."
    )


def seconds(name: str, value: Any) -> float | None:
    """A check for a number of seconds; None: no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionTypeError(f"{name} is a number of seconds or {option_words.literal(None)}; {value!r} was given.")
    if not 0 < float(value) <= threading.TIMEOUT_MAX:
        raise OptionError(
            f"{name} is a number of seconds above 0; {value} was given. {option_words.literal(None)}: no limit."
        )
    return float(value)


def shapes(name: str, value: Any) -> dict[str, tuple[int | None, ...]]:
    """A check for shapes by input: a size for each dimension, None for one that stays open."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionTypeError(f"{name} is a mapping of an input's name to its shape; {value!r} was given.")
    found: dict[str, tuple[int | None, ...]] = {}
    for key, shape in value.items():
        sizes = tuple(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else None
        if not isinstance(key, str) or sizes is None or not all(map(_is_size, sizes)):
            raise OptionTypeError(
                f"{name} has a list of sizes for each input, for example {option_words.given(name, {'x': [1, 3, 224, 224]})}, "
                f"{option_words.literal(None)} for one that is not fixed; "
                f"{key!r}: {shape!r} was given."
            )
        if any(size is not None and int(size) > _LARGEST for size in sizes):
            raise OptionError(f"{name} has sizes of at most {_LARGEST}, as ONNX has; {key!r}: {shape!r} was given.")
        found[key] = tuple(None if size is None else int(size) for size in sizes)
    return found


def _is_size(value: Any) -> bool:
    return value is None or (isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0)


#: Keyword-only on every preset.
COMMON = (
    Option("input_example", anything, doc="one example of the inputs, in any of the three forms", positional=False),
    Option("input_shapes", shapes, doc="shapes to fix inputs to, by name: {'x': (1, 3, 224, 224)}", positional=False),
    Option("adapt", flag, True, "rewrite the model where the engine would refuse it", positional=False),
    Option("fallback", one_of(*FALLBACKS), "partial", "what nodes may run on the CPU EP", positional=False),
    Option("cache_dir", cache_dir, doc="folder for compiled models; False: none", positional=False),
    Option(
        "verify_weights", flag, False, "before each run, hold the model's files to what they were", positional=False
    ),
    Option("isolate", flag, False, "run the model in a process of its own, replaced when it dies", positional=False),
    Option("time_limit", seconds, doc="with isolate, seconds that prepare or a run may take", positional=False),
)

#: ONNX's own runner passes these to `prepare`.
IGNORED = frozenset({"rtol", "atol"})


def settle(
    given: Mapping[str, Any], options: Collection[Option], *, preset: str, others: Check | None = None
) -> dict[str, Any]:
    """Check given options and fill in the defaults.

    Parameters
    ----------
    others : callable, optional
        Checks options that are not listed (an engine's properties); without it they are errors.

    Raises
    ------
    OptionError
        An option is unknown (the message names the known ones), missing, or not allowed.
    """
    known = {o.name: o for o in options}
    settled: dict[str, Any] = {}
    for name, value in given.items():
        if name in IGNORED:
            continue
        if name in known:
            settled[name] = known[name].check(name, value)
        elif others is not None:
            settled[name] = others(name, value)
        else:
            listed = ", ".join(["device", *known])
            mappings = " or ".join(o for o in ("session_options", "provider_options") if o in known)
            engines = f" ONNX Runtime's own options go into {mappings}." if mappings else ""
            meant = similar(name, ["device", *known])
            raise OptionError(f"{preset} has no option {name!r}.{meant} Its options are {listed}.{engines}")
    for option in known.values():
        if option.name not in settled:
            if option.default is REQUIRED:
                value = option_words.Placeholder("VALUE")
                raise OptionError(f"{preset} needs {option_words.given(option.name, value)}: {option.doc}.")
            settled[option.name] = option.check(option.name, option.default)
    return settled
