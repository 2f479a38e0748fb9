# SPDX-License-Identifier: Apache-2.0
"""Pooling operators, and what their attributes tell."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from onnx_multi_backend.adapt.site import Site

#: Operators with auto_pad and dilations.
POOLS = ("AveragePool", "LpPool", "MaxPool")
#: Padding that is written out, or none.
WRITTEN_OUT = ("NOTSET", "VALID")
#: Since this opset onnx infers sizes without the windows that are left out.
TOLD_OF_WINDOWS = 22
#: Padding that follows from the sizes.
SAME = ("SAME_UPPER", "SAME_LOWER")


def dilates_into_auto_pad(node: NodeProto) -> bool:
    """Whether a pooling node has dilations, and padding that follows from them and from the size of its input."""
    given = _given(node)
    return _is_same(given) and "dilations" in given and any(dilation > 1 for dilation in given["dilations"].ints)


def may_leave_a_window_out(node: NodeProto) -> bool:
    """Whether a pooling node may round its size up to a window that would start in the padding at the end."""
    given = _given(node)
    if "ceil_mode" not in given or not given["ceil_mode"].i or "kernel_shape" not in given:
        return False
    kernel = list(given["kernel_shape"].ints)
    strides, dilations = (list(given[n].ints) if n in given else [1] * len(kernel) for n in ("strides", "dilations"))
    ends = list(given["pads"].ints)[len(kernel) :] if "pads" in given else [0] * len(kernel)
    each = zip(kernel, strides, dilations, ends, strict=False)
    return any(end + stride > dilation * (size - 1) + 1 for size, stride, dilation, end in each)


def gaps_under_auto_pad(node: NodeProto) -> list[int]:
    """How many elements lie between the windows of a pooling node, along each axis; none where its padding does not follow from the size.

    An image of a multiple of the stride would be padded by that many less than none.
    """
    given = _given(node)
    if not _is_same(given) or "kernel_shape" not in given or "strides" not in given:
        return []
    kernel = list(given["kernel_shape"].ints)
    dilations = given["dilations"].ints if "dilations" in given else [1] * len(kernel)
    steps = zip(kernel, dilations, given["strides"].ints, strict=False)
    return [stride - (reach - 1) * dilation - 1 for reach, dilation, stride in steps]


def _given(node: NodeProto) -> dict[str, AttributeProto]:
    return {a.name: a for a in node.attribute}


def _is_same(given: dict[str, AttributeProto]) -> bool:
    return "auto_pad" in given and given["auto_pad"].s.decode(errors="replace") in SAME


def pads_of(site: Site, count: int) -> list[int]:
    """The pads of a pool that are written out: those before each of the `count` axes, then those behind."""
    given: list[int] = site.attribute("pads", []) if site.attribute("auto_pad", "NOTSET") != "VALID" else []
    return given or [0] * 2 * count


def axes_of(site: Site) -> list[tuple[int | None, int, int, int, int]]:
    """The size of each axis of an image, how far a window reaches, the padding before and behind, and the stride; none where these do not fit."""
    kernel = site.attribute("kernel_shape", [])
    count = len(kernel)
    sizes = (site.shape(site.input(0)) or [None] * (count + 2))[2:]
    strides, dilations = (site.attribute(name, [1] * count) for name in ("strides", "dilations"))
    pads = pads_of(site, count)
    if len(pads) != 2 * count or not count == len(sizes) == len(strides) == len(dilations):
        return []
    reach = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True)]
    return list(zip(sizes, reach, pads[:count], pads[count:], strides, strict=True))


def leaves_a_window_out(site: Site) -> bool:
    """Whether a pool is known to round its size up to a window that would start in the padding at the end, which is left out."""
    if not site.attribute("ceil_mode", 0) or site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return False
    return any(
        size is not None and -(-(size + begin + end - reach) // stride) * stride >= size + begin
        for size, reach, begin, end, stride in axes_of(site)
    )
