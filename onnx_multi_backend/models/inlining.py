# SPDX-License-Identifier: Apache-2.0
"""Models without local functions."""

from __future__ import annotations

import onnx.checker
import onnx.inliner
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.plausible import expands_too_far


def inlined(model: ModelProto) -> ModelProto:
    """The model without local functions; the same one where they come to more nodes than are worth looking at.

    Raises
    ------
    InvalidModelError
        When a function calls itself, or is called with more than it takes.
    """
    if not model.functions or expands_too_far(model):
        return model
    try:
        return onnx.inliner.inline_local_functions(_with_defaults(model))
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise InvalidModelError(f"The model's functions cannot be put in place of their calls: {error}") from error


def _with_defaults(model: ModelProto) -> ModelProto:
    """The model whose calls give what a function's attributes are by default: onnx's inliner (1.23) leaves these out of the body."""
    defaults = {
        (canonical(f.domain), f.name, f.overload): f.attribute_proto for f in model.functions if f.attribute_proto
    }
    if not defaults:
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy):
        given = {attribute.name for attribute in node.attribute}
        known = defaults.get((canonical(node.domain), node.op_type, node.overload), ())
        node.attribute.extend(attribute for attribute in known if attribute.name not in given)
    return copy
