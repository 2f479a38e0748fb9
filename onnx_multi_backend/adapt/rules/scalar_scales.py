# SPDX-License-Identifier: Apache-2.0
"""Rule: QuantizeLinear and DequantizeLinear of a tensor without axes, by a scale that has one."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def scalar_scales(site: Site) -> Iterator[ModelProto]:
    """Take the axis of the scale and the zero point away."""
    if scales_a_scalar(site):
        body = Body(site, site.opsets)
        factors = [body("Reshape", name, body.ints()) for name in site.node.input[1:] if name]
        attributes = site.attributes("axis", "block_size")
        yield body.finish(body(site.op_type, site.input(0), *factors, **attributes))


def scales_a_scalar(site: Site) -> bool:
    """Whether it is such a node."""
    quantizes = site.is_("DequantizeLinear", "QuantizeLinear")
    return quantizes and site.rank(site.input(0)) == 0 and site.shape(site.input(1)) == [1]
