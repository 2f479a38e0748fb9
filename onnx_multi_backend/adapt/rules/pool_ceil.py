# SPDX-License-Identifier: Apache-2.0
"""Rule: pools that round their size up."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.pools import POOLS, WRITTEN_OUT, axes_of, pads_of
from onnx_multi_backend.adapt.rules.pool_windows import counts_padding, in_image
from onnx_multi_backend.adapt.site import Body, Site


def pool_ceil(site: Site) -> Iterator[ModelProto]:
    """Give the padding that makes as many windows when the size is rounded down; padding is never the greatest, and adds nothing to a norm.

    Means are written so where no more padding is counted in them. Source: MaxPool's documentation: a window that would start in the
    padding at the end is left out.
    """
    if not site.is_(*POOLS) or not site.attribute("ceil_mode", 0):
        return
    if site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return
    if (ends := _ends(site)) is None:
        yield from _of_any_size(site)
        return
    body = Body(site)
    begins, before = pads_of(site, len(ends))[: len(ends)], pads_of(site, len(ends))[len(ends) :]
    if counts_padding(site) and any(end > was for end, was in zip(ends, before, strict=True)):
        return
    given = site.attributes("ceil_mode", "pads", "auto_pad")
    if not site.is_("MaxPool"):
        yield body.finish(body(site.op_type, site.input(0), pads=[*begins, *ends], **given))
        return
    results = body("MaxPool", site.input(0), outputs=len(site.node.output), pads=[*begins, *ends], **given)
    yield body.finish(*(result if wanted else "" for result, wanted in zip(results, site.node.output, strict=True)))


def _ends(site: Site) -> list[int] | None:
    """The padding behind each axis; None where it depends on a size that is not known."""
    ends = []
    for size, reach, begin, end, stride in axes_of(site):
        if size is None:
            if end + stride - 1 >= reach:  # a window may start in the padding
                return None
            ends.append(end + stride - 1)
            continue
        windows = -(-(size + begin + end - reach) // stride) + 1
        if (windows - 1) * stride >= size + begin:
            windows -= 1
        if windows < 1 or not size:
            return None
        ends.append(max(0, (windows - 1) * stride + reach - size - begin))
    return ends or None


def _of_any_size(site: Site) -> Iterator[ModelProto]:
    """The norms of as many windows as there can be; those are cut off that start behind the image."""
    count = len(site.attribute("kernel_shape", []))
    strides, pads = site.attribute("strides", [1] * count), pads_of(site, count)
    if not site.is_("LpPool") or len(pads) != 2 * count or len(strides) != count:
        return
    if site.rank(site.input(0)) != count + 2:
        return
    body = Body(site)
    ends = [end + stride - 1 for end, stride in zip(pads[count:], strides, strict=True)]
    image = body("Pad", site.input(0), body.ints(0, 0, *pads[:count], 0, 0, *ends))
    norms = body("LpPool", image, **site.attributes("ceil_mode", "pads", "auto_pad"))
    yield body.finish(in_image(body, norms, site.input(0), pads, strides))
