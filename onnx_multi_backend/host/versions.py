# SPDX-License-Identifier: Apache-2.0
"""Versions of installed packages, by the names that they are imported by."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping
from importlib import metadata

#: Of this package.
__version__ = "0.1.0"


_NUMBERS = re.compile(r"\d+(\.\d+)*")
_COMPARED = {"<": lambda a, b: a < b, ">=": lambda a, b: a >= b}


def fits(version: str, wanted: str) -> bool:
    """Whether a version is within a specifier, such as ``>=1.31,<1.32``; pre-releases count.

    The usual form, versions of numbers alone, is compared here: importing packaging's specifiers would be a twentieth of the time
    from the import of this package to the first run.
    """
    clauses = [clause.strip() for clause in wanted.split(",")]
    signs = [next((sign for sign in _COMPARED if clause.startswith(sign)), "") for clause in clauses]
    numbers = [clause.removeprefix(sign).strip() for clause, sign in zip(clauses, signs, strict=True)]
    if all(signs) and all(_NUMBERS.fullmatch(text) for text in (version, *numbers)):
        own = _release(version)
        return all(_COMPARED[sign](own, _release(text)) for sign, text in zip(signs, numbers, strict=True))
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _release(text: str) -> list[int]:
    """The numbers of a version, without zeros at its end: 1.32 is 1.32.0."""
    numbers = [int(part) for part in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def installed_version(name: str) -> str | None:
    """Return the version of a package, by its import name first: ``onnxruntime`` is onnxruntime-gpu's version too.

    A distribution of that very name that installs it is found at once; looking through all of them costs some 0.1 s.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        own = metadata.distribution(name)
        if (
            name in (own.read_text("top_level.txt") or "").split()
            or f"\n{name}/" in f"\n{own.read_text('RECORD') or ''}"
        ):
            return own.version
    return next(iter(versions_of(name).values()), None)


def versions_of(name: str) -> dict[str, str]:
    """Return the versions of the distributions that install a package, by its import name or by their own."""
    found = {}
    for distribution in (*_distributions().get(name, ()), name):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[metadata.metadata(distribution)["Name"]] = metadata.version(distribution)
    return found


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()
