# SPDX-License-Identifier: Apache-2.0
"""Rule: Max, Min and Sum of three tensors or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: What adds up or compares two tensors.
OF_TWO = {"Max": "Max", "Min": "Min", "Sum": "Add"}

#: A size, the name of one, or nothing where neither is known.
_Size = int | str | None


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
    """Whether all inputs are known to have the shape of the result, or one and the same shape that is broadcast to it."""
    shapes = {_sizes(site, name) for name in site.node.input}
    if None in shapes or len(shapes) > 2:
        return False
    if len(shapes) == 1:
        return None not in (shapes.pop() or ())
    one, other = (shape or () for shape in shapes)
    return _fits(one, other) or _fits(other, one)


def _sizes(site: Site, name: str) -> tuple[_Size, ...] | None:
    found, shape = site.type(name), site.shape(name)
    if found is None or shape is None:
        return None
    dims = found.tensor_type.shape.dim
    return tuple(dim.dim_param or None if size is None else size for size, dim in zip(shape, dims, strict=True))


def _fits(small: Sequence[_Size], large: Sequence[_Size]) -> bool:
    """Whether a shape is broadcast to another without changing that."""
    if len(small) > len(large) or None in large:
        return False
    return all(a in (1, b) for a, b in zip(small, large[len(large) - len(small) :], strict=True))
