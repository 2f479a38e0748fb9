# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers."""

from __future__ import annotations

LAYERS = frozenset({"GRU", "LSTM", "RNN"})
