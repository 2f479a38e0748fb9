# SPDX-License-Identifier: Apache-2.0
"""Rule: TopK of floating-point numbers, some of which are infinite."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.extremes import LARGEST
from onnx_multi_backend.adapt.site import Body, Site

#: Since these opsets k is an input, and GatherElements exists.
_K_INPUT, _GATHERS = 10, 11


def top_k_infinities(site: Site) -> Iterator[ModelProto]:
    """Order finite numbers, and gather the values by their indices. Source: TopK's documentation.

    For an infinity that comes last, the last finite number stands: beside that number itself, the one with the lower index comes first.
    """
    x, kind = site.input(0), site.elem_type(site.input(0))
    if not site.is_("TopK") or kind not in LARGEST or GUARDED in site.node.name:
        return
    body = Body(site) if site.opset < _GATHERS else Body(site, site.opsets)
    k = body.ints(site.attribute("k")) if site.opset < _K_INPUT else site.input(1)
    largest = site.attribute("largest", 1)
    last = body.constant(-LARGEST[kind] if largest else LARGEST[kind], kind)
    beyond = body("Less", x, last) if largest else body("Less", last, x)
    _, indices = body("TopK", body("Where", beyond, last, x), k, outputs=2, name=GUARDED, **site.attributes("k"))
    yield body.finish(body("GatherElements", x, indices, axis=site.attribute("axis", -1)), indices)
