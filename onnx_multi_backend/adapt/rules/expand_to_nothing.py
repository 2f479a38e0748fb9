# SPDX-License-Identifier: Apache-2.0
"""Rule: Expand whose result is known to be empty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def comes_to_nothing(site: Site) -> bool:
    """Whether the result is known to have no elements. Source: Expand's documentation; shape inference, where the shape is computed."""
    shape, wanted = site.shape(site.input(0)), site.constant(site.input(1))
    if shape is None or (wanted is not None and (wanted.ndim != 1 or wanted.size == 0)):  # another rank is not valid
        return False
    if wanted is None:
        return 0 in (site.shape(site.node.output[0]) or ())
    pairs = list(zip(reversed(shape), reversed([int(size) for size in wanted]), strict=False))
    if any(size == 1 and new == 0 for size, new in pairs):
        return True
    return None not in shape and (0 in shape or 0 in wanted) and all(a == b or 1 in (a, b) for a, b in pairs)


def expand_to_nothing(site: Site) -> Iterator[ModelProto]:
    """Make a tensor without elements of that shape."""
    if not site.is_("Expand") or not comes_to_nothing(site):
        return
    x, kind = site.input(0), site.elem_type(site.input(0))
    made, told = site.shape(site.node.output[0]), site.shape(site.input(1))
    if kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        return
    body = Body(site)
    if made is not None and None not in made:
        yield body.finish(body.zeros(body.constant(np.array(made), TensorProto.INT64), kind))
        return
    rank, count = site.rank(x), told[0] if told else None
    if rank is None or count is None:
        return
    rest = body.ints(*[1] * abs(rank - count)) if rank != count else None
    sizes, new = body("Shape", x), site.input(1)
    if rest is not None and rank < count:
        sizes = body("Concat", rest, sizes, axis=0)
    elif rest is not None:
        new = body("Concat", rest, new, axis=0)
    final = body("Where", body("Equal", new, body.ints(1)), sizes, new)
    yield body.finish(body.zeros(final, kind))
