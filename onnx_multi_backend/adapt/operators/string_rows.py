# SPDX-License-Identifier: Apache-2.0
"""Rows of strings: those that a Gather moves, that a Loop collects, and those of them that may be another value's own memory."""

from __future__ import annotations

from collections import Counter

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.graph_walk import subgraphs

#: What one of these makes, or no node at all, may be another value's own memory: an If of a constant is put in place.
_PASSING = frozenset({"Identity", "If"})


def may_collect_strings(node: NodeProto) -> bool:
    """Whether a Loop may collect rows of strings, as far as its body declares what it makes."""
    declared = [
        row.type.tensor_type.elem_type for body in subgraphs(node) for row in body.output[len(body.input) - 1 :]
    ]
    return not {TensorProto.STRING, TensorProto.UNDEFINED}.isdisjoint(declared)


def rows_of_strings(site: Site) -> list[int]:
    """The places of a Loop's results that are rows of strings."""
    if not site.is_("Loop"):
        return []
    body = site.attribute("body")
    states = len(body.input) - 2
    found = enumerate(body.output[1 + states :], states)
    return [place for place, row in found if TensorProto.STRING in _types(site, place, row.type.tensor_type.elem_type)]


def _types(site: Site, place: int, declared: int) -> tuple[int, ...]:
    return (declared, site.elem_type(site.node.output[place])) if site.has_output(place) else (declared,)


def shared_rows(site: Site) -> list[int]:
    """Those of them that may be the memory of a state, of another row or of a value from outside."""
    body = site.attribute("body")
    makers = {name: node.op_type for node in body.node for name in node.output}
    times = Counter(value.name for value in body.output)
    names = {place: body.output[1 + place].name for place in rows_of_strings(site)}
    return [p for p, name in names.items() if times[name] > 1 or makers.get(name, "Identity") in _PASSING]


def gathers_rows_of_strings(site: Site) -> bool:
    """Whether more than one string may lie behind an index of a Gather."""
    if not site.is_("Gather") or site.elem_type(site.input(0)) != TensorProto.STRING:
        return False
    shape, axis = site.shape(site.input(0)), site.attribute("axis", 0)
    if shape is None:
        return bool(axis != -1)
    behind = shape[axis % len(shape) + 1 :] if shape else []
    return any(size != 1 for size in behind)
