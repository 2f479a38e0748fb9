# SPDX-License-Identifier: Apache-2.0
"""Rule: Conv and ConvTranspose of constants."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

#: The operators, and the type of which ONNX Runtime computes them ahead where all is known.
CONVOLUTIONS, _FOLDED = ("Conv", "ConvTranspose"), TensorProto.FLOAT


def remains_to_be_computed(site: Site) -> bool:
    """Whether image and weights are known before anything runs, and the result is not."""
    if not site.is_(*CONVOLUTIONS) or GUARDED in site.node.name or not all(map(site.is_known, site.node.input[:2])):
        return False
    return site.elem_type(site.input(0)) != _FOLDED or (site.has_input(2) and not site.is_known(site.input(2)))


def constant_convolutions(site: Site) -> Iterator[ModelProto]:
    """Convolve without the bias, which is known then, and add that. Of float64, float32 would lose digits."""
    x, w = site.input(0), site.input(1)
    rank, kind = site.rank(x), site.elem_type(x)
    if not remains_to_be_computed(site) or rank is None or kind == TensorProto.DOUBLE:
        return
    body = Body(site, site.opsets)
    if kind != _FOLDED:
        x, w = body.cast(x, _FOLDED), body.cast(w, _FOLDED)
    result = body(site.op_type, x, w, name=GUARDED, **site.attributes())
    if kind != _FOLDED:
        result = body.cast(result, kind)
    if site.has_input(2):
        result = body("Add", result, body("Reshape", site.input(2), body.ints(1, -1, *[1] * (rank - 2))))
    yield body.finish(result)
