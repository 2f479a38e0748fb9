# SPDX-License-Identifier: Apache-2.0
"""Rule: a convolution with a kernel of 1, pads and strides."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.site import Body, Site


def may_stride_over_pads(node: NodeProto) -> bool:
    """Whether a convolution has pads and strides, and no kernel that is known to be larger than 1."""
    ints = {a.name: a.ints for a in node.attribute}
    if not any(ints.get("pads", ())) or all(step == 1 for step in ints.get("strides", ())):
        return False
    return all(size == 1 for size in ints.get("kernel_shape", ()))


def strides_over_pads(site: Site) -> bool:
    """Whether it has a kernel of 1, pads and strides."""
    if not site.is_("Conv") or not may_stride_over_pads(site.node):
        return False
    weights = site.shape(site.input(1))
    return weights is not None and len(weights) > 2 and all(size == 1 for size in weights[2:])


def strided_points(site: Site) -> Iterator[ModelProto]:
    """Pad, take each place that the strides leave, and convolve these. Source: Conv's documentation."""
    if not strides_over_pads(site):
        return
    pads, steps = site.attribute("pads"), site.attribute("strides")
    if len(pads) != 2 * len(steps) or any(pad < 0 for pad in pads):
        return
    body, count = Body(site), len(steps)
    axes = range(2, 2 + count)
    padded = body("Pad", site.input(0), body.ints(0, 0, *pads[:count], 0, 0, *pads[count:]))
    ends = body.ints(*[2**31 - 1] * count)
    taken = body("Slice", padded, body.ints(*[0] * count), ends, body.ints(*axes), body.ints(*steps))
    read = [taken, *site.node.input[1:]]
    yield body.finish(body("Conv", *read, **site.attributes("auto_pad", "pads", "strides")))
