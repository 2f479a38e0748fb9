# SPDX-License-Identifier: Apache-2.0
"""Rule: Unique in the order of the first occurrences."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def elements_in_order_alone(site: Site) -> bool:
    """Whether Unique keeps the order of the flattened input, and nobody asks where its elements went."""
    return not site.attribute("sorted", 1) and site.attribute("axis") is None and not site.has_output(2)


def unique_order(site: Site) -> Iterator[ModelProto]:
    """Sort the elements, and then what was found by where it was found first."""
    if not site.is_("Unique") or not elements_in_order_alone(site):
        return
    body = Body(site)
    elements, firsts, _, counts = body("Unique", site.input(0), sorted=1, outputs=4)
    in_order, order = body("TopK", firsts, body("Shape", firsts), largest=0, sorted=1, outputs=2)
    found = (body("Gather", elements, order), in_order, "", body("Gather", counts, order))
    yield body.finish(*(value if site.has_output(i) else "" for i, value in enumerate(found)))
