# SPDX-License-Identifier: Apache-2.0
"""Rule: pooling that rounds its size up, on an engine that keeps windows which start in the padding at the end, or counts what lies behind it."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.pools import WRITTEN_OUT, pads_of
from onnx_multi_backend.adapt.site import Body, Site


def counts_padding(site: Site) -> bool:
    """Whether means are taken over the padding too."""
    kernel = site.attribute("kernel_shape", [])
    return site.is_("AveragePool") and bool(site.attribute("count_include_pad", 0)) and any(pads_of(site, len(kernel)))


def pool_windows(site: Site) -> Iterator[ModelProto]:
    """Cut these windows off; padding that counts is put around the image before, so that nothing else is counted.

    Source: MaxPool's documentation: a window starts in the image or in the padding before it.
    """
    kernel, rank = site.attribute("kernel_shape", []), site.rank(site.input(0))
    if not site.is_("AveragePool", "MaxPool") or not site.attribute("ceil_mode", 0) or rank is None:
        return
    if GUARDED in site.node.name or site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return
    count = len(kernel)
    strides, pads = site.attribute("strides", [1] * count), pads_of(site, count)
    padded = counts_padding(site)
    body = Body(site, site.opsets if site.opset >= (11 if padded else 10) else None)
    image, given = site.input(0), site.attributes(*["pads"] * padded)
    if padded:
        image = body("Pad", image, body.ints(0, 0, *pads[:count], 0, 0, *pads[count:]))
        image = body("Max", image, image)  # OpenVINO would make one node of both
    results = body(site.op_type, image, name=GUARDED, outputs=len(site.node.output), **given)
    yield body.finish(
        *(
            in_image(body, v, site.input(0), pads, strides) if n else ""
            for v, n in zip(results, site.node.output, strict=True)
        )
    )


def in_image(body: Body, windows: str, image: str, pads: list[int], strides: list[int]) -> str:
    """Of the windows those that start in the image, or in the padding before it."""
    count = len(strides)
    axes = body.ints(*range(2, count + 2))
    more = body.ints(*(pad + stride - 1 for pad, stride in zip(pads, strides, strict=False)))
    sizes = body("Gather", body("Shape", image), axes, axis=0)
    ends = body("Div", body("Add", sizes, more), body.ints(*strides))
    return str(body("Slice", windows, body.ints(*[0] * count), ends, axes))
