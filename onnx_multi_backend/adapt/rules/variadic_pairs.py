# SPDX-License-Identifier: Apache-2.0
"""Rule: Max, Min and Sum of three tensors or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: What adds up or compares two tensors.
OF_TWO = {"Max": "Max", "Min": "Min", "Sum": "Add"}


def variadic_pairs(site: Site) -> Iterator[ModelProto]:
    """Take two at a time, in their order."""
    if not site.is_(*OF_TWO) or len(site.node.input) < 3:
        return
    body = Body(site, site.opsets)
    result, *others = site.node.input
    for other in others:
        result = body(OF_TWO[site.op_type], result, other)
    yield body.finish(result)


def broadcasts_one_way(site: Site) -> bool:
    """Whether all inputs are known to have the shape of the result, or one and the same shape that is broadcast to it.

    Names of sizes do not count: an input may have another size than its name says.
    """
    found = [site.shape(name) for name in site.node.input]
    shapes = {tuple(shape) for shape in found if shape is not None}
    if None in found or any(None in shape for shape in shapes) or len(shapes) > 2:
        return False
    one, *others = shapes
    return all(_fits(one, other) or _fits(other, one) for other in others)


def _fits(small: Sequence[int | None], large: Sequence[int | None]) -> bool:
    """Whether a shape is broadcast to another without changing that."""
    if len(small) > len(large):
        return False
    return all(a in (1, b) for a, b in zip(small, large[len(large) - len(small) :], strict=True))
