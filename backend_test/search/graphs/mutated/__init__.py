# SPDX-License-Identifier: Apache-2.0
"""Random graphs that resemble what engines fuse: patterns of networks, each changed in a few places."""

from __future__ import annotations

from backend_test.search.graphs.mutated.generate import random_pattern

__all__ = ["random_pattern"]
