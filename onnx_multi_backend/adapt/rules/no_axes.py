# SPDX-License-Identifier: Apache-2.0
"""Rule: operators that are given no axes at all, and so change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.site import Body, Site

#: Their second input is a list, one number for each axis that they change.
LISTS = frozenset({"Expand", "Tile", "Unsqueeze"})


def may_have_no_axes(node: NodeProto, facts: Facts) -> bool:
    """Whether the list of a node has no elements, as far as its constants tell."""
    tensor = facts.constants.get(node.input[1]) if len(node.input) > 1 else None
    return tensor is not None and 0 in tensor.dims


def has_no_axes(site: Site) -> bool:
    """Whether the list is known to have no elements."""
    given = site.constant(site.input(1)) if site.is_(*LISTS) and site.has_input(1) else None
    return given is not None and given.size == 0


def no_axes(site: Site) -> Iterator[ModelProto]:
    """Pass the tensor on."""
    if has_no_axes(site):
        body = Body(site, site.opsets)
        yield body.finish(body("Identity", site.input(0)))
