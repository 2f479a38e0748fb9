# SPDX-License-Identifier: Apache-2.0
"""Rule: Transpose of what is known to have no elements."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def moved(site: Site) -> tuple[list[int], list[int]] | None:
    """The shapes of input and result of a Transpose, where the input is known to have no elements."""
    shape = site.shape(site.input(0)) if site.is_("Transpose") else None
    known = [size for size in shape or () if size is not None]
    if shape is None or len(known) < len(shape) or 0 not in known:
        return None
    order = site.attribute("perm") or list(reversed(range(len(known))))
    return known, [known[axis] for axis in order]


def transpose_nothing(site: Site) -> Iterator[ModelProto]:
    """Make a tensor without elements of the result's shape."""
    shapes, kind = moved(site), site.elem_type(site.input(0))
    if shapes is None or kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        return
    body = Body(site)
    yield body.finish(body.zeros(body.ints(*shapes[1]), kind))
