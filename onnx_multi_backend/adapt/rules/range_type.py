# SPDX-License-Identifier: Apache-2.0
"""Rule: Range of opset 27, which is the older one with two more types."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def range_type(site: Site) -> Iterator[ModelProto]:
    """The older Range, for the narrow types in float32, as ``stash_type`` wants it. Source: Range's documentation.

    The body that ONNX's schema has for Range is a Loop, which takes a step of its own for each number.
    """
    elem_type = site.elem_type(site.input(0))
    if not site.is_("Range") or site.opset < 27 or not elem_type:
        return
    body = Body(site)
    if elem_type not in _NARROW:
        yield body.finish(body("Range", *site.node.input))
    elif site.attribute("stash_type", TensorProto.FLOAT) == TensorProto.FLOAT:
        wide = body("Range", *(body.cast(name, TensorProto.FLOAT) for name in site.node.input))
        yield body.finish(body.cast(wide, elem_type))
