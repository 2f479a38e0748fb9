# SPDX-License-Identifier: Apache-2.0
"""Rule: a DFT along any axis, or one-sided, as one along the middle axis of three."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def fourier(site: Site) -> Iterator[ModelProto]:
    """Bring the axis, which may be known only at run time, behind all others; of a one-sided one keep the first half.

    The one-sided inverse is not written: the opsets disagree about it.
    """
    known = site.shape(site.input(0))
    if not site.is_("DFT") or known is None or len(known) < 2:
        return
    rank = len(known)
    inverse, onesided = (site.attribute(name, 0) for name in ("inverse", "onesided"))
    if onesided and inverse:
        return
    body = Body(site)
    axis = _axis(body, site, rank)
    if axis is None:
        return
    shape, numbers = body("Shape", site.input(0)), body.ints(*range(rank))
    one, last = body.ints(1), body.ints(rank - 1)
    before, own = body("Less", numbers, axis), body("Equal", numbers, axis)
    x, parts, length = site.input(0), body.ints(2), body("Gather", shape, axis)
    if known[-1] != 2:  # OpenVINO's frontend looks at the shape, which is not known behind a Reshape
        missing = body("Sub", parts, body("Gather", shape, last)) if known[-1] is None else one
        pads = body("Concat", body.ints(*[0] * (2 * rank - 1)), missing, axis=0)
        x = body("Pad", x, pads, body.constant(0, site.elem_type(x)))
    outer = _product(body, before, shape)
    inner = _product(body, body("And", body("Less", axis, numbers), body("Less", numbers, last)), shape)

    def joined(*sizes: str) -> str:
        return str(body("Concat", *sizes, axis=0))

    x = body("Reshape", x, joined(outer, length, inner, parts), allowzero=1)
    x = body("Transpose", x, perm=[0, 2, 1, 3])
    x = body("Reshape", x, joined(body("Mul", outer, inner), length, parts), allowzero=1)
    wanted = [site.input(1)] if site.has_input(1) else []
    if max(site.target, 18) < 20:
        x = body("DFT", x, *wanted, axis=1, inverse=inverse)
    else:
        x = body("DFT", x, *(wanted or [""]), body.constant(np.array(1, np.int64)), inverse=inverse)
    made = body("Reshape", wanted[0], one) if wanted else length
    made = body("Cast", made, to=TensorProto.INT64)
    if onesided:
        made = body("Add", body("Div", made, body.ints(2)), one)
        x = body("Slice", x, body.ints(0), made, one)
    x = body("Reshape", x, joined(outer, inner, made, body.ints(2)), allowzero=1)
    x = body("Transpose", x, perm=[0, 2, 1, 3])
    stay = [size for size in known[:-1] if size is not None]
    if wanted or onesided or len(stay) < rank - 1:
        sizes = body("Where", body("Equal", numbers, last), body.ints(2), body("Where", own, made, shape))
    else:  # known sizes stay known: OpenVINO may refuse what reads others
        sizes = body.ints(*stay, 2)
    yield body.finish(body("Reshape", x, sizes, allowzero=1))


def _axis(body: Body, site: Site, rank: int) -> str | None:
    """The axis, from 0, as a tensor of one element; None where it is not valid."""
    known = site.attribute("axis", 1) if site.opset < 20 else -2
    if site.opset >= 20 and site.has_input(2):
        given = site.constant(site.input(2))
        if given is None:
            axis = body("Reshape", body("Cast", site.input(2), to=TensorProto.INT64), body.ints(1))
            return str(body("Where", body("Less", axis, body.ints(0)), body("Add", axis, body.ints(rank)), axis))
        if given.size != 1:  # not valid
            return None
        known = int(given.item())
    return body.ints(known % rank)


def _product(body: Body, which: str, sizes: str) -> str:
    """The product of some sizes; 1 of none."""
    return str(body("ReduceProd", body("Where", which, sizes, body.ints(1)), keepdims=1))
