# SPDX-License-Identifier: Apache-2.0
"""What foreign code raises, put into words."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    """Return what an exception says, also where it cannot say it."""
    try:
        return str(error)
    except Exception as fault:  # a foreign exception's own __str__
        return f"(its message cannot be told: {type(fault).__name__})"


def describe_error(error: BaseException) -> str:
    """Return ``Type: message``."""
    return f"{type(error).__name__}: {message_of(error)}"
