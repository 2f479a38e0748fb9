# SPDX-License-Identifier: Apache-2.0
"""Rule: DepthToSpace and SpaceToDepth of types that the engine has no kernel for."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

_RANK = 4
#: What the axes of images, cut into blocks, come from: by operator and mode.
_ORDERS = {
    ("DepthToSpace", "DCR"): (0, 3, 4, 1, 5, 2),
    ("DepthToSpace", "CRD"): (0, 1, 4, 2, 5, 3),
    ("SpaceToDepth", "DCR"): (0, 3, 5, 1, 2, 4),
    ("SpaceToDepth", "CRD"): (0, 1, 3, 5, 2, 4),
}


def depth_and_space(site: Site) -> Iterator[ModelProto]:
    """Reshape and transpose, which engines do with elements of any type. Source: the two operators' documentation."""
    x, size = site.input(0), site.attribute("blocksize", 0)
    order = _ORDERS.get((site.op_type, site.attribute("mode", "DCR")))
    if site.domain or order is None or site.rank(x) != _RANK or size < 1:
        return
    body = Body(site, site.opsets)
    images, channels, height, width = _sizes(body, site)
    block = body.ints(size)
    if site.op_type == "SpaceToDepth":
        height, width = (body("Div", of, block) for of in (height, width))
        cut = (images, channels, height, block, width, block)
        joined = (images, body("Mul", channels, body.ints(size * size)), height, width)
    else:
        channels = body("Div", channels, body.ints(size * size))
        before = (channels, block, block) if site.attribute("mode", "DCR") == "CRD" else (block, block, channels)
        cut = (images, *before, height, width)
        joined = (images, channels, *(body("Mul", of, block) for of in (height, width)))
    blocks = body("Reshape", x, body("Concat", *cut, axis=0))
    yield body.finish(body("Reshape", body("Transpose", blocks, perm=order), body("Concat", *joined, axis=0)))


def _sizes(body: Body, site: Site) -> list[str]:
    """Each axis's size, of rank 1: known, or asked for in each run."""
    known = site.shape(site.input(0)) or [None] * _RANK
    shape = "" if None not in known else body("Shape", site.input(0))
    return [
        body("Gather", shape, body.ints(axis), axis=0) if of is None else body.ints(of) for axis, of in enumerate(known)
    ]
