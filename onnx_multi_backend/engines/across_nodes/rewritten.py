# SPDX-License-Identifier: Apache-2.0
"""What a pass over a whole model returns."""

from __future__ import annotations

from typing import NamedTuple

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation

#: The pass that adds biases behind convolutions, which an optimizer of ONNX Runtime would undo.
BIASES_ADDED = "biases_added"


class Rewritten(NamedTuple):
    """A changed copy of a model.

    Attributes
    ----------
    model : onnx.ModelProto
    changes : tuple of Adaptation
    added : frozenset of str
        The names of the nodes that are new.
    """

    model: ModelProto
    changes: tuple[Adaptation, ...]
    added: frozenset[str] = frozenset()
