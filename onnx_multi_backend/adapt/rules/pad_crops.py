# SPDX-License-Identifier: Apache-2.0
"""Rule: Pad that crops more than the tensor has, of a number that the other end is padded with; or whose pads only a run tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.pad_value import is_padded_at_run_time, padded_with_value
from onnx_multi_backend.adapt.site import Body, Site

#: The first opset whose pads are an input.
_PADS_AS_INPUT = 11


def may_crop_too_much(site: Site) -> bool:
    """Whether pads that only a run tells may crop more than there is, of a known rank; where axes are named, they are not those of all."""
    if not site.is_("Pad") or GUARDED in site.node.name or site.attribute("mode", "constant") != "constant":
        return False
    known = not site.has_input(1) or site.has_input(3) or site.is_known(site.input(1))
    return not known and bool(site.rank(site.input(0)))


def pad_crops(site: Site) -> Iterator[ModelProto]:
    """Pad, and crop that. Source: Pad's documentation, and its cases since onnx 1.24."""
    x, rank = site.input(0), site.rank(site.input(0))
    if not site.is_("Pad") or GUARDED in site.node.name or site.attribute("mode", "constant") != "constant":
        return
    if site.has_input(3) or not rank or site.elem_type(x) == TensorProto.STRING:
        return
    named = site.attribute("pads") if site.opset < _PADS_AS_INPUT else None
    pads = np.array(named) if named is not None else site.constant(site.input(1))
    if pads is not None and (pads.size != 2 * rank or not (pads < 0).any() or _leaves_less_than_nothing(site, pads)):
        return
    body = Body(site)
    value = [site.input(2)] if site.has_input(2) else []
    if named is not None:
        value = [body.constant(site.attribute("value", 0.0), site.elem_type(x))]
    if pads is not None:
        padded = body("Pad", x, body.ints(*pads.clip(0)), *value)
        first, last = (body.ints(*half) for half in -pads.clip(None, 0).reshape(2, rank))
    else:
        given, zero = site.input(1), body.ints(0)
        grown = body("Where", body("Less", zero, given), given, zero)
        if is_padded_at_run_time(site):
            padded = padded_with_value(body, site, grown)
        else:
            padded = body("Pad", x, grown, *value, name=GUARDED)
        cropped = body("Where", body("Less", given, zero), body("Sub", zero, given), zero)
        first, last = (body("Slice", cropped, body.ints(i * rank), body.ints((i + 1) * rank), zero) for i in (0, 1))
    ends = body("Sub", body("Shape", padded), last)
    ends = body("Where", body("Less", body.ints(0), ends), ends, body.ints(0))
    yield body.finish(body("Slice", padded, first, ends, body.ints(*range(rank))))


def _leaves_less_than_nothing(site: Site, pads: np.ndarray[Any, Any]) -> bool:
    sizes = site.shape(site.input(0)) or []
    return any(
        size is not None and size + sum(both) < 0 for size, both in zip(sizes, pads.reshape(2, -1).T, strict=True)
    )
