# SPDX-License-Identifier: Apache-2.0
"""Rule: TopK of uint64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def top_k_unsigned(site: Site) -> Iterator[ModelProto]:
    """Order uint64 as int64 with the highest bit turned round, and gather the values by their indices."""
    x, k = site.input(0), site.input(1)
    if not site.is_("TopK") or site.elem_type(x) != TensorProto.UINT64 or not k:
        return
    body = Body(site)
    # Cast keeps the bits; the addition wraps around.
    keys = body("Add", body.cast(x, TensorProto.INT64), body.constant(np.iinfo(np.int64).min, TensorProto.INT64))
    _, indices = body("TopK", keys, k, outputs=2, **site.attributes())
    yield body.finish(body("GatherElements", x, indices, axis=site.attribute("axis", -1)), indices)
