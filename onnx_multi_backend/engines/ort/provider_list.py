# SPDX-License-Identifier: Apache-2.0
"""A list of execution providers, in the forms that ONNX Runtime takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx_multi_backend.errors import OptionError, OptionTypeError


def with_options(
    providers: Sequence[Any], options: Sequence[Mapping[str, Any]] | None
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the providers, each with its options.

    Parameters
    ----------
    providers : sequence of str or tuple
        Names, or pairs of a name and its options.
    options : sequence of mapping, optional
        One mapping a provider, for those that are names.

    Raises
    ------
    OptionError
        There are more or fewer mappings than providers.
    """
    if not isinstance(providers, (list, tuple)) or not providers:
        raise OptionTypeError(f"Execution providers are a list of names; {providers!r} was given.")
    if options is not None and not isinstance(options, (list, tuple)):
        raise OptionTypeError(f"provider_options is a list of mappings, one a provider; {options!r} was given.")
    more = list(options) if options is not None else [{} for _ in providers]
    if len(more) != len(providers):
        raise OptionError(f"provider_options has {len(more)} mappings for {len(providers)} providers.")
    pairs = [p if isinstance(p, tuple) and len(p) == 2 else (p, own) for p, own in zip(providers, more, strict=True)]
    if not all(isinstance(name, str) for name, _ in pairs):
        raise OptionTypeError(f"Execution providers are a list of names; {providers!r} was given.")
    if not all(isinstance(own, Mapping) for _, own in pairs):
        raise OptionTypeError(f"A provider's options are a mapping; {[own for _, own in pairs]!r} was given.")
    return pairs
