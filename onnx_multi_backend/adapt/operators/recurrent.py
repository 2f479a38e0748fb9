# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers."""

from __future__ import annotations

from collections.abc import Iterable

LAYERS = frozenset({"GRU", "LSTM", "RNN"})


def activation_names(given: Iterable[bytes]) -> list[str]:
    """The activations that a layer names, in small letters: the case does not count."""
    return [name.decode(errors="replace").lower() for name in given]
