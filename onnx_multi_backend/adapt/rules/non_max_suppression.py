# SPDX-License-Identifier: Apache-2.0
"""Rule: NonMaxSuppression whose boxes must not overlap at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_TINY = float(np.finfo(np.float32).tiny)


def may_be_zero(site: Site) -> bool:
    """Whether the threshold may be 0, its default."""
    known = site.constant(site.input(3)) if site.has_input(3) else np.zeros(1)
    return known is None or not bool((known >= _TINY).all())


def non_max_suppression(site: Site) -> Iterator[ModelProto]:
    """Give the smallest normal number for 0: no two boxes of float32 overlap by less."""
    if not site.is_("NonMaxSuppression") or not may_be_zero(site):
        return
    body = Body(site, site.opsets)
    tiny = body.constant([_TINY], TensorProto.FLOAT)
    given = site.input(3)
    inputs = [site.input(i) for i in range(max(4, len(site.node.input)))]
    known = site.constant(given) if given else None
    inputs[3] = tiny if not given or known is not None else body("Where", body("Less", given, tiny), tiny, given)
    yield body.finish(body("NonMaxSuppression", *inputs, name=GUARDED, **site.attributes()))
