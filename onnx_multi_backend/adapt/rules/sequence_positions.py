# SPDX-License-Identifier: Apache-2.0
"""Rule: an element of a sequence at a position that is known only at run time and may be counted from the end."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site


def is_open(site: Site) -> bool:
    """Whether a node takes the position of an element that is known only at run time."""
    return site.has_input(1) and not site.is_known(site.input(1)) and GUARDED not in site.node.name


def sequence_positions(site: Site) -> Iterator[ModelProto]:
    """Add the sequence's length to a position below 0: from the start every engine counts alike. Source: SequenceAt's documentation."""
    if not site.is_("SequenceAt", "SequenceErase") or not is_open(site):
        return
    body = Body(site)
    position = body.cast(site.input(1), TensorProto.INT64)
    below = body.cast(body("Less", position, body.constant(0, TensorProto.INT64)), TensorProto.INT64)
    node = NodeProto()
    node.CopyFrom(site.node)
    node.name = GUARDED
    node.input[1] = body("Add", position, body("Mul", below, body("SequenceLength", site.input(0))))
    yield body.finish(*body.add(node))
