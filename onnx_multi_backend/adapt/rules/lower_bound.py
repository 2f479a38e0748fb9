# SPDX-License-Identifier: Apache-2.0
"""Rule: a Clip of integers with a lower bound alone."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site


def lower_bound(site: Site) -> Iterator[ModelProto]:
    """Take the larger of both. Source: Clip's documentation, of opset 12 and newer: Max takes integers since."""
    if site.is_("Clip") and bounds_below_alone(site):
        body = Body(site)
        yield body.finish(body("Max", site.input(0), site.input(1)))


def bounds_below_alone(site: Site) -> bool:
    """Whether a Clip limits integers from below, and not from above."""
    return site.has_input(1) and not site.has_input(2) and site.elem_type(site.input(0)) in INTEGER_BITS
