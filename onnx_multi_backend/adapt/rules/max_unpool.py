# SPDX-License-Identifier: Apache-2.0
"""Rule: MaxUnpool with an output shape."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def max_unpool_shape(site: Site) -> Iterator[ModelProto]:
    """Unpool into the shape that the attributes give, which the indices are meant for, and pad that at its end."""
    rank = site.rank(site.input(0))
    if not site.is_("MaxUnpool") or not site.has_input(2) or rank is None:
        return
    body = Body(site)
    natural = body("MaxUnpool", site.input(0), site.input(1), **site.attributes())
    more = body("Sub", site.input(2), body("Shape", natural))
    pads = body("Concat", body.ints(*[0] * rank), more, axis=0)
    yield body.finish(body("Pad", natural, pads, body.constant(0, site.elem_type(site.input(0)))))
