# SPDX-License-Identifier: Apache-2.0
"""Rule: ConvTranspose whose padding follows from ``auto_pad``."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

SAME = ("SAME_UPPER", "SAME_LOWER")


def conv_transpose_pads(site: Site) -> Iterator[ModelProto]:
    """Write out the pads: the output is ``stride`` times as large as the input, so they do not depend on its size.

    Source: ConvTranspose's documentation; where the strides leave gaps between the kernels nothing is padded, as ONNX
    Runtime has it.
    """
    padding = site.attribute("auto_pad", "NOTSET")
    if not site.is_("ConvTranspose") or padding not in SAME or site.attribute("output_shape"):
        return
    weights = site.shape(site.input(1))
    kernel: list[int] = site.attribute("kernel_shape") or [size or 0 for size in (weights or [])[2:]]
    if not kernel or 0 in kernel:
        return
    count = len(kernel)
    strides, dilations = (site.attribute(name, [1] * count) for name in ("strides", "dilations"))
    more: list[int] = site.attribute("output_padding", [0] * count)
    total = [max(0, dilations[i] * (kernel[i] - 1) + 1 + more[i] - strides[i]) for i in range(count)]
    smaller, larger = [n // 2 for n in total], [n - n // 2 for n in total]
    pads = [*smaller, *larger] if padding == "SAME_UPPER" else [*larger, *smaller]
    body = Body(site, site.opsets)
    yield body.finish(body("ConvTranspose", *site.node.input, pads=pads, **site.attributes("auto_pad", "pads")))
