# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop that is known never to run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype


def loop_of_no_steps(site: Site) -> Iterator[ModelProto]:
    """Pass the initial values on, beside no rows. Source: Loop's documentation, where the condition is looked at before each step.

    A row's size that is not known is 0, as ONNX Runtime has it.
    """
    if not site.is_("Loop") or not runs_never(site):
        return
    body = Body(site, site.opsets)
    results = list(site.node.input[2:])
    for output in site.node.output[len(results) :]:
        shape, kind = site.shape(output), site.elem_type(output)
        if output and (shape is None or not kind):
            return
        rows = [0, *(size or 0 for size in (shape or [])[1:])]
        results.append(body.constant(np.zeros(rows, numpy_dtype(kind))) if output else "")
    yield body.finish(*results)


def runs_never(site: Site) -> bool:
    """Whether a Loop's trip count or its first condition is known, and allows no step."""
    count, condition = (_known(site, place) for place in (0, 1))
    return (count is not None and count <= 0) or (condition is not None and not condition)


def runs_once(site: Site) -> bool:
    """Whether a Loop's trip count and its first condition are known, and allow a step; either may be omitted."""
    count, condition = (_known(site, place) if site.has_input(place) else 1 for place in (0, 1))
    return count is not None and condition is not None and count > 0 and bool(condition)


def _known(site: Site, place: int) -> int | None:
    """The constant trip count or condition, where it is one integer or bool."""
    held = site.constant(site.input(place))
    return int(held.item()) if held is not None and held.size == 1 and held.dtype.kind in "iub" else None
