# SPDX-License-Identifier: Apache-2.0
"""Versions of installed packages, by the names that they are imported by."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from importlib import metadata

#: Of this package.
__version__ = "0.1.0"


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
