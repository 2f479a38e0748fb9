# SPDX-License-Identifier: Apache-2.0
"""Blocks of elements that share a scale and a zero point."""

from __future__ import annotations

from collections.abc import Callable

from onnx import TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto


def over_blocks(body: Body, site: Site) -> Callable[[str], str]:
    """What repeats a scale or zero point of each block, as float32, over the block's elements."""
    x, axis, block = site.input(0), site.attribute("axis", 1), site.attribute("block_size")
    shape = site.shape(x)
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if size is not None:
        blocks = body.ints(*(place // block for place in range(size)))
    else:
        zero, one, length = (body.constant(number, _T.INT64) for number in (0, 1, block))
        end = body("Gather", body("Shape", x), body.constant(axis, _T.INT64))
        blocks = body("Div", body("Range", zero, end, one), length)
    return lambda name: str(body("Gather", body.cast(name, _T.FLOAT), blocks, axis=axis))
