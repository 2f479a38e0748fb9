# SPDX-License-Identifier: Apache-2.0
"""The constructor's signature of a preset, made of its options, and a call of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.presets.options import Option


def signature_of(own: Sequence[Option], common: Iterable[Option], *, others: bool) -> inspect.Signature:
    """The signature: the model, a preset's own positional options, then everything by keyword.

    Parameters
    ----------
    own, common : iterable of Option
    others : bool
        Whether it takes further keyword arguments.
    """
    parameters = [inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [_parameter(o) for o in own if o.positional]
    parameters.append(inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None))
    parameters += [_parameter(o) for o in (*own, *common) if not o.positional]
    if others:
        parameters.append(inspect.Parameter("engine_options", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def named(who: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, the model among them.

    Raises
    ------
    TypeError
        There are too many, one is given twice, or the model is missing.
    """
    names = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(args) > len(names):
        raise TypeError(f"{who} takes at most {len(names)} positional arguments: {', '.join(names)}.")
    given = dict(kwargs)
    for name, value in zip(names, args, strict=False):
        if name in kwargs:
            raise TypeError(f"{who} got {name!r} twice.")
        given[name] = value
    if "model" not in given:
        raise TypeError(f"{who} needs a model: {who}{signature}.")
    return given


def _parameter(option: Option) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if option.positional else inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, kind, default=option.default)
