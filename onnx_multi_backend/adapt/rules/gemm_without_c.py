# SPDX-License-Identifier: Apache-2.0
"""Rule: Gemm with beta=0, where a kernel multiplies what C holds by it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def reads_c_for_nothing(site: Site) -> bool:
    """Whether a Gemm has a C that counts for nothing, unless it is known to be finite: 0 times that is 0 anyway."""
    c = site.input(2)
    if not site.is_("Gemm") or not c or site.attribute("beta", 1.0) or site.elem_type(c) not in _FLOATS:
        return False
    known = site.constant(c)
    return known is None or not np.isfinite(known.astype(np.float64)).all()


def gemm_without_c(site: Site) -> Iterator[ModelProto]:
    """Leave C out. Source: ONNX's reference implementation, and ONNX Runtime, neither of which reads it then."""
    if not reads_c_for_nothing(site):
        return
    body = Body(site)
    yield body.finish(body("Gemm", *site.node.input[:2], **site.attributes("beta", "broadcast")))
