# SPDX-License-Identifier: Apache-2.0
"""The named tuple that a run returns."""

from __future__ import annotations

import functools
from typing import Any

from onnx.backend.base import namedtupledict


@functools.cache
def outputs_type(names: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """The named tuple for these outputs; its values can be pickled, though no module holds the class.

    ``_asdict`` has the outputs' own names, those that are not identifiers included.
    """
    made = namedtupledict("Outputs", names)

    def reduce(self: tuple[Any, ...]) -> tuple[Any, ...]:
        return _outputs_again, (names, tuple(self))

    def asdict(self: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(names, self, strict=True))

    setattr(made, "_asdict", asdict)  # noqa: B010
    setattr(made, "__reduce__", reduce)  # noqa: B010 - a method of a class that has no body to write it in
    return made


def _outputs_again(names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    return outputs_type(names)._make(values)  # type: ignore[no-any-return, attr-defined]
