# SPDX-License-Identifier: Apache-2.0
"""Operands without elements that end the process where they come first."""

from __future__ import annotations

from typing import Any


def last(op: Any) -> bool:
    """Multiply's operand without elements goes last, unless neither has any."""
    first, second = op.input_value(0), op.input_value(1)
    if not _is_empty(first) or _is_empty(second):
        return False
    op.input(0).replace_source_output(second)
    op.input(1).replace_source_output(first)
    return True


def _is_empty(value: Any) -> bool:
    shape = value.get_partial_shape()
    return bool(shape.rank.is_static and any(size.is_static and size.get_length() == 0 for size in shape))
