# SPDX-License-Identifier: Apache-2.0
"""Rule: pooling whose padding follows from the size of its input."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.pools import POOLS, SAME
from onnx_multi_backend.adapt.site import Body, Site


def pool_pads(site: Site) -> Iterator[ModelProto]:
    """Give the pads that ``auto_pad`` stands for. Source: AveragePool's documentation."""
    shape, kernel, how = site.shape(site.input(0)), site.attribute("kernel_shape", []), site.attribute("auto_pad")
    if not site.is_(*POOLS) or how not in SAME:
        return
    ones = [1] * len(kernel)
    strides, dilations = site.attribute("strides", ones), site.attribute("dilations", ones)
    sizes = shape[2:] if shape is not None else [None] * len(kernel)
    if not len(sizes) == len(kernel) == len(strides) == len(dilations):
        return
    begins, ends = [], []
    for size, reach, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        if size is None and stride > 1 and reach > 1:
            return
        beyond = 0 if size is None else size - (-(-size // stride) - 1) * stride - 1  # behind the last window's start
        total = max(0, (reach - 1) * dilation - beyond)
        less, more = total // 2, total - total // 2
        begins.append(less if how == "SAME_UPPER" else more)
        ends.append(more if how == "SAME_UPPER" else less)
    body = Body(site)
    given = site.attributes("auto_pad", "ceil_mode", "pads")
    inputs, count = list(site.node.input), len(site.node.output)
    results = body(site.op_type, *inputs, outputs=count, pads=[*begins, *ends], **given)
    yield body.finish(*(result if wanted else "" for result, wanted in zip(results, site.node.output, strict=True)))
