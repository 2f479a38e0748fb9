# SPDX-License-Identifier: Apache-2.0
"""Rule: MaxPool that rounds its size up."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.rules.pool_windows import WRITTEN_OUT, pads_of
from onnx_multi_backend.adapt.site import Body, Site


def pool_ceil(site: Site) -> Iterator[ModelProto]:
    """Give the padding that makes as many windows when the size is rounded down; padding is never the greatest.

    Source: MaxPool's documentation: a window that would start in the padding at the end is left out.
    """
    shape, kernel = site.shape(site.input(0)), site.attribute("kernel_shape", [])
    if not site.is_("MaxPool") or not site.attribute("ceil_mode", 0) or shape is None or None in shape[2:]:
        return
    if site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT or 0 in shape[2:]:
        return
    count = len(kernel)
    strides, dilations = (site.attribute(name, [1] * count) for name in ("strides", "dilations"))
    pads = pads_of(site, count)
    ends = []
    for i, size in enumerate(shape[2:]):
        assert size is not None
        reach, begin, end, stride = dilations[i] * (kernel[i] - 1) + 1, pads[i], pads[count + i], strides[i]
        windows = -(-(size + begin + end - reach) // stride) + 1
        if (windows - 1) * stride >= size + begin:
            windows -= 1
        if windows < 1:
            return
        ends.append(max(0, (windows - 1) * stride + reach - size - begin))
    body = Body(site)
    given = site.attributes("ceil_mode", "pads", "auto_pad")
    results = body("MaxPool", site.input(0), outputs=len(site.node.output), pads=[*pads[:count], *ends], **given)
    yield body.finish(*(result if wanted else "" for result, wanted in zip(results, site.node.output, strict=True)))
