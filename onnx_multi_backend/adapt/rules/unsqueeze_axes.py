# SPDX-License-Identifier: Apache-2.0
"""Rule: Unsqueeze whose axes are known only when it runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.plausible import MOST_AXES


def unsqueeze_axes(site: Site) -> Iterator[ModelProto]:
    """Reshape: the axes' number gives the new rank, and every other place takes the next size of the tensor."""
    if not site.is_("Unsqueeze") or not site.has_input(1) or site.constant(site.input(1)) is not None:
        return
    rank, count = site.rank(site.input(0)), site.shape(site.input(1))
    if rank is None or not count or count[0] is None or (total := rank + count[0]) > MOST_AXES:
        return
    body = Body(site)
    axes = body("Mod", body.cast(site.input(1), TensorProto.INT64), body.constant(total, TensorProto.INT64))
    new = body("Expand", body.ints(1), body.ints(count[0]))
    marks = body("ScatterElements", body.constant(np.zeros(total, np.int64)), axes, new, axis=0)
    one = body.constant(1, TensorProto.INT64)
    before = body("CumSum", body("Sub", one, marks), body.constant(0, TensorProto.INT64))
    sizes = body("Concat", body.ints(1), body("Shape", site.input(0)), axis=0)
    taken = body("Gather", sizes, before, axis=0)  # the first, 1, is before any size of the tensor
    shape = body("Where", body("Equal", marks, one), one, taken)
    yield body.finish(body("Reshape", site.input(0), shape, allowzero=1))
