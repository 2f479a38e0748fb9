# SPDX-License-Identifier: Apache-2.0
"""Models without local functions."""

from __future__ import annotations

import onnx.checker
import onnx.inliner
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError


def inlined(model: ModelProto) -> ModelProto:
    """The model without local functions.

    Raises
    ------
    InvalidModelError
        When a function calls itself, or is called with more than it takes.
    """
    try:
        return onnx.inliner.inline_local_functions(model) if model.functions else model
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise InvalidModelError(f"The model's functions cannot be put in place of their calls: {error}") from error
