# SPDX-License-Identifier: Apache-2.0
"""Names that a model does not use yet."""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.models.graph_walk import all_nodes


def names_taken(model: ModelProto) -> set[str]:
    """The names of a model's nodes, and of what they read and make."""
    return {name for node in all_nodes(model) for name in (node.name, *node.input, *node.output)}


def unused(name: str, taken: set[str]) -> str:
    """A name like this one that is not taken; it is from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
