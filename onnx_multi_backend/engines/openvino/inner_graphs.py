# SPDX-License-Identifier: Apache-2.0
"""The graphs in a read model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def graphs_of(model: Any) -> Iterator[Any]:
    """The branches and loop bodies in a model, the inner ones first, and the model itself."""
    for op in model.get_ops():
        kind = op.get_type_name()
        if kind == "If":
            yield from graphs_of(op.get_then_body())
            yield from graphs_of(op.get_else_body())
        elif kind in ("Loop", "TensorIterator"):
            yield from graphs_of(op.get_function())
    yield model
