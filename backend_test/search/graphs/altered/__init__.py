# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases with other attributes, operands and sizes."""

from __future__ import annotations

from backend_test.search.graphs.altered.generate import random_case as random_case

__all__ = ["random_case"]
