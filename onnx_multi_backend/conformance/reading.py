# SPDX-License-Identifier: Apache-2.0
"""Taking fields out of what JSON gave; a field that nobody asks for is left aside."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any


def take(values: Any, name: str, *kinds: type) -> Any:
    """Return a field.

    Raises
    ------
    KeyError
        It is missing.
    TypeError
        It is of none of the kinds, or `values` are not an object.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{reprlib.repr(values)} is not an object with a field {name!r}")
    value = values[name]
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {reprlib.repr(value)}")
    return value


def take_texts(values: Any, name: str) -> tuple[str, ...]:
    """Return a field that is a list of texts."""
    return tuple(take({name: value}, name, str) for value in take(values, name, list))


def take_versions(values: Any, name: str) -> dict[str, str]:
    """Return a field that maps names to texts."""
    found = take(values, name, Mapping)
    return {key: take(found, key, str) for key in found}
