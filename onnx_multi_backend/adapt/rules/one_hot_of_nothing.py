# SPDX-License-Identifier: Apache-2.0
"""Rule: OneHot of indices that are known to be none."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def one_hot_of_nothing(site: Site) -> Iterator[ModelProto]:
    """Make a tensor without elements of that shape."""
    x, depth, kind = site.input(0), site.input(1), site.elem_type(site.input(2))
    shape = site.shape(x) or []
    if not site.is_("OneHot") or 0 not in shape or kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        return
    body = Body(site)
    rank, axis = len(shape), site.attribute("axis", -1)
    axis += rank + 1 if axis < 0 else 0
    depth = body.cast(body("Reshape", depth, body.ints(1)), TensorProto.INT64)
    before, behind = body("Shape", x, start=0, end=axis), body("Shape", x, start=axis, end=rank)
    yield body.finish(body.zeros(body("Concat", before, depth, behind, axis=0), kind))
