# SPDX-License-Identifier: Apache-2.0
"""Rule: Range whose end may lie on the other side of its start, so that it is empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site


def may_run_backwards(site: Site) -> bool:
    """Whether the end may lie behind the start; in a Range from 0 upwards it does not where it is computed of sizes alone."""
    start, end, step = (site.constant(site.input(i)) for i in range(3))
    if _is_malformed(start, end, step):
        return False
    if step is None or start is None:
        return True
    if end is not None:
        return bool((end - start) * step < 0)
    least = site.value(site.input(1)).low
    return not (start == 0 < step and least is not None and least >= 0)


def _is_malformed(*constants: np.ndarray[Any, Any] | None) -> bool:
    """Whether one of them is not a single number, which is not valid."""
    return any(constant is not None and constant.size != 1 for constant in constants)


def range_end(site: Site) -> Iterator[ModelProto]:
    """Stop at the start at least."""
    if not site.is_("Range") or GUARDED in site.node.name:
        return
    start, end, step = (site.input(i) for i in range(3))
    body = Body(site, site.opsets)
    above = body("Where", body("Less", end, start), start, end)
    below = body("Where", body("Less", start, end), start, end)
    known = site.constant(step)
    if _is_malformed(known):
        return
    if known is not None:
        stop = above if known > 0 else below
    else:
        stop = body("Where", body("Less", step, body.constant(0, site.elem_type(step))), below, above)
    yield body.finish(body("Range", start, stop, step, name=GUARDED, **site.attributes()))
