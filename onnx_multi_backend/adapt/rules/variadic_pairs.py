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
    shapes = {_sizes(site.shape(name)) for name in site.node.input}
    if None in shapes or len(shapes) > 2:
        return False
    if len(shapes) == 1:
        return True
    one, other = (shape or () for shape in shapes)
    return _fits(one, other) or _fits(other, one)


def _sizes(shape: Sequence[int | None] | None) -> tuple[int, ...] | None:
    sizes = tuple(size for size in shape or () if size is not None)
    return None if shape is None or len(sizes) < len(shape) else sizes


def _fits(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether a shape is broadcast to another without changing that."""
    if len(small) > len(large):
        return False
    return all(a in (1, b) for a, b in zip(small, large[len(large) - len(small) :], strict=True))
