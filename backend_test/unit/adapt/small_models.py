# SPDX-License-Identifier: Apache-2.0
"""Small models as text, and numbers for their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
from onnx import ModelProto

Array = np.ndarray[Any, Any]


def parsed(text: str, opset: int = 17) -> ModelProto:
    """A model of which the graph is given."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')


def floats(*sizes: int) -> Array:
    """The same numbers for the same sizes."""
    return np.random.default_rng(sum(sizes)).normal(size=sizes).astype(np.float32)
