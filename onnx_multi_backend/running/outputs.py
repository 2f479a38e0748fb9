# SPDX-License-Identifier: Apache-2.0
"""The named tuple that a run returns."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from onnx.backend.base import namedtupledict

from onnx_multi_backend.errors import OnnxMultiBackendError

#: So many names are listed.
_MOST_NAMED = 20


class UnknownOutputError(OnnxMultiBackendError, KeyError):
    """A result has no output of this name."""

    def __str__(self) -> str:  # KeyError shows the quoted text
        return str(self.args[0])


@functools.cache
def outputs_type(names: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """The named tuple for these outputs; its values can be pickled, though no module holds the class.

    ``_asdict`` has the outputs' own names, those that are not identifiers included.
    """
    made = namedtupledict("Outputs", names)
    places = {name: place for place, name in enumerate(names)}

    def getitem(self: tuple[Any, ...], key: Any) -> Any:
        if isinstance(key, str):
            if key not in places:
                raise UnknownOutputError(_unknown(key, names))
            key = places[key]
        return tuple.__getitem__(self, key)

    def getattr_(self: tuple[Any, ...], name: str) -> NoReturn:
        raise AttributeError(_unknown(name, names))

    def reduce(self: tuple[Any, ...]) -> tuple[Any, ...]:
        return _outputs_again, (names, tuple(self))

    def asdict(self: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(names, self, strict=True))

    setattr(made, "_asdict", asdict)  # noqa: B010
    setattr(made, "__getitem__", getitem)  # noqa: B010
    setattr(made, "__getattr__", getattr_)  # noqa: B010
    setattr(made, "__reduce__", reduce)  # noqa: B010 - a method of a class that has no body to write it in
    return made


def _unknown(name: str, names: tuple[str, ...]) -> str:
    """What to say of a name that no output has."""
    import difflib

    listed = ", ".join(map(repr, names[:_MOST_NAMED]))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    near = [] if name.startswith("__") else difflib.get_close_matches(name, names, 1)
    cure = f" Did you mean {near[0]!r}?" if near else ""
    return f"no output is called {name!r}; the outputs are {listed}{more}.{cure}"


def _outputs_again(names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    return outputs_type(names)._make(values)  # type: ignore[no-any-return, attr-defined]
