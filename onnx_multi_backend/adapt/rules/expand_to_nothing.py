# SPDX-License-Identifier: Apache-2.0
"""Rule: Expand whose result is known to be empty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def comes_to_nothing(site: Site) -> bool:
    """Whether the result is known to have no elements. Source: Expand's documentation."""
    shape, wanted = site.shape(site.input(0)), site.constant(site.input(1))
    if shape is None or wanted is None or wanted.size == 0:
        return False
    pairs = list(zip(reversed(shape), reversed([int(size) for size in wanted]), strict=False))
    if any(size == 1 and new == 0 for size, new in pairs):
        return True
    return None not in shape and (0 in shape or 0 in wanted) and all(a == b or 1 in (a, b) for a, b in pairs)


def expand_to_nothing(site: Site) -> Iterator[ModelProto]:
    """Make a tensor without elements of that shape."""
    if not site.is_("Expand") or not comes_to_nothing(site):
        return
    x, kind = site.input(0), site.elem_type(site.input(0))
    rank, wanted = site.rank(x), site.constant(site.input(1))
    if rank is None or wanted is None or kind in (TensorProto.UNDEFINED, TensorProto.STRING):
        return
    body = Body(site)
    sizes, new = body("Shape", x), np.concatenate([np.ones(max(0, rank - wanted.size), np.int64), wanted])
    if rank < wanted.size:
        sizes = body("Concat", body.ints(*[1] * (wanted.size - rank)), sizes, axis=0)
    final = body("Where", body.constant(new == 1), sizes, body.constant(new, TensorProto.INT64))
    yield body.finish(body.zeros(final, kind))
