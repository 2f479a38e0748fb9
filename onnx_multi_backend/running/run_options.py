# SPDX-License-Identifier: Apache-2.0
"""The options of one run, which a user may give in two ways at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import OptionError, OptionTypeError


def joined(given: Any, named: Mapping[str, Any], target: Target) -> Any:
    """What the engine's session gets.

    Parameters
    ----------
    given : mapping or object
        The argument ``run_options``.
    named : mapping of str to value
        Keyword arguments beside it.

    Raises
    ------
    OptionError
        A name is no string; or `given` is no mapping, and the engine has no use for it, or there are others beside it.
    """
    if isinstance(given, Mapping):
        if odd := [name for name in given if not isinstance(name, str)]:
            raise OptionTypeError(f"Names of run options are strings; {odd[0]!r} was given.")
        return {**given, **named}
    target.check_run_options(given)
    if named:
        raise OptionError(
            f"{target.preset}: run_options is a {type(given).__name__} and {', '.join(named)} given beside it. Set it there, or "
            "pass all of them by name."
        )
    return given
