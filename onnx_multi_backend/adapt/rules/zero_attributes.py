# SPDX-License-Identifier: Apache-2.0
"""Rule: HardSigmoid and Selu with an attribute that is zero."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.site import Body, Site

#: The attributes by operator, with their defaults.
ATTRIBUTES = {
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
}


def zero_attributes(site: Site) -> Iterator[ModelProto]:
    """Write the operator's formula. Source: HardSigmoid's and Selu's documentation."""
    if site.opset < 6 or not has_a_zero(site):
        return
    x, kind = site.input(0), site.elem_type(site.input(0))
    first, second = (site.attribute(name, default) for name, default in ATTRIBUTES[site.op_type].items())
    body = Body(site)
    if site.op_type == "Selu":
        yield body.finish(body("Mul", body("Elu", x, alpha=first), body.constant(second, kind)))
        return
    zero, one = body.constant(0, kind), body.constant(1, kind)
    line = body("Add", body("Mul", x, body.constant(first, kind)), body.constant(second, kind))
    above = body("Where", body("Less", line, zero), zero, line)
    yield body.finish(body("Where", body("Less", one, above), one, above))


def has_a_zero_attribute(node: NodeProto) -> bool:
    """The same, decided from the node alone; one that a local function's caller gives counts as zero."""
    known = ATTRIBUTES.get(node.op_type, {})
    return any(a.name in known and a.f == 0 for a in node.attribute)


def has_a_zero(site: Site) -> bool:
    """Whether it is such an operator, and one of its attributes is zero."""
    known = ATTRIBUTES.get(site.op_type, {}) if not site.domain else {}
    return any(site.attribute(name, default) == 0 for name, default in known.items())
