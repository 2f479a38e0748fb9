# SPDX-License-Identifier: Apache-2.0
"""Rules: ConvTranspose whose padding follows from ``auto_pad``, or from the shape of its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: Since this opset Slice and Pad have their bounds as inputs.
_SIZED_PADS = 11
SAME = ("SAME_UPPER", "SAME_LOWER")


def conv_transpose_pads(site: Site) -> Iterator[ModelProto]:
    """Write out the pads: the output is ``stride`` times as large as the input, so they do not depend on its size.

    Source: ConvTranspose's documentation; where the strides leave gaps between the kernels nothing is padded, as ONNX
    Runtime has it.
    """
    padding = site.attribute("auto_pad", "NOTSET")
    if not site.is_("ConvTranspose") or padding not in SAME or site.attribute("output_shape"):
        return
    kernel = _kernel(site)
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


def pads_for_its_output(site: Site) -> bool:
    """Whether the shape of the output is given, and pads for it may differ from side to side."""
    wanted = site.attribute("output_shape", [])
    if not site.is_("ConvTranspose") or not wanted:
        return False
    shape, kernel = site.shape(site.input(0)), _kernel(site)
    if shape is None or len(shape) != len(wanted) + 2 or len(kernel) != len(wanted):
        return True
    return any(total is None or (total > 0 and total % 2) for total in _totals(site, shape[2:], kernel, wanted))


def conv_transpose_output(site: Site) -> Iterator[ModelProto]:
    """Write out the pads; where the size of the input is open, crop what comes without.

    Source: ConvTranspose's documentation; where the output is larger than what there is, zeros are behind that, as ONNX Runtime has it.
    """
    wanted: list[int] = site.attribute("output_shape", [])
    shape, kernel = site.shape(site.input(0)), _kernel(site)
    if (
        not pads_for_its_output(site)
        or shape is None
        or not len(shape) - 2 == len(wanted) == len(kernel)
        or 0 in kernel
    ):
        return
    upper = site.attribute("auto_pad", "NOTSET") == "SAME_UPPER"
    totals = _totals(site, shape[2:], kernel, wanted)
    body, given = Body(site, site.opsets), site.attributes("auto_pad", "output_shape", "pads")
    known = [total for total in totals if total is not None]
    if len(known) == len(totals):
        steps = [max(pair) for pair in zip(*_steps(site, len(wanted)), strict=True)]
        more = [n + max(0, -total) for n, total in zip(_more(site, len(wanted)), known, strict=True)]
        if any(n >= step for n, step in zip(more, steps, strict=True) if n):
            return
        halves = [max(0, total) // 2 for total in known]
        others = [max(0, total) - half for total, half in zip(known, halves, strict=True)]
        given.pop("output_padding", None)
        pads = [*halves, *others] if upper else [*others, *halves]
        yield body.finish(body("ConvTranspose", *site.node.input, pads=pads, output_padding=more, **given))
        return
    if site.opset < _SIZED_PADS:
        return
    whole, axes = body("ConvTranspose", *site.node.input[:2], **given), body.ints(*range(2, len(shape)))
    zero, two, kind = body.ints(0), body.constant(2, TensorProto.INT64), site.elem_type(site.input(0))
    total = body("Sub", body("Gather", body("Shape", whole), axes), body.ints(*wanted))
    cut = body("Where", body("Less", total, zero), zero, total)
    half = body("Div", cut, two)
    begins = half if upper else body("Sub", cut, half)
    taken = body("Slice", whole, begins, body("Add", begins, body.ints(*wanted)), axes)
    behind = body("Concat", body.ints(*[0] * (len(shape) + 2)), body("Sub", cut, total), axis=0)
    result = body("Pad", taken, behind, body.constant(0, kind))
    if site.has_input(2):
        result = body("Add", result, body("Reshape", site.input(2), body.ints(1, -1, *[1] * len(wanted))))
    yield body.finish(result)


def _kernel(site: Site) -> list[int]:
    weights = site.shape(site.input(1))
    return site.attribute("kernel_shape") or [size or 0 for size in (weights or [])[2:]]


def _totals(site: Site, sizes: Sequence[int | None], kernel: list[int], wanted: list[int]) -> list[int | None]:
    """How much is padded along each axis; None where a size is not known."""
    strides, dilations = _steps(site, len(wanted))
    more = _more(site, len(wanted))
    return [
        None if size is None else strides[i] * (size - 1) + more[i] + dilations[i] * (kernel[i] - 1) + 1 - wanted[i]
        for i, size in enumerate(sizes)
    ]


def _steps(site: Site, count: int) -> tuple[list[int], list[int]]:
    """The strides and the dilations."""
    return site.attribute("strides", [1] * count), site.attribute("dilations", [1] * count)


def _more(site: Site, count: int) -> list[int]:
    return list(site.attribute("output_padding", [0] * count))
