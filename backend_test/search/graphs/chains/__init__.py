# SPDX-License-Identifier: Apache-2.0
"""Chains: each node reads the last one's result, and most sizes are equal, as engines' fusions want them."""

from __future__ import annotations

from backend_test.search.graphs.chains.generate import random_chain

__all__ = ["random_chain"]
