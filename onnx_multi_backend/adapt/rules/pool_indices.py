# SPDX-License-Identifier: Apache-2.0
"""Rule: MaxPool of 8 bits whose Indices are wanted."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_EIGHT = (TensorProto.INT8, TensorProto.UINT8)


def indexes_eight_bits(site: Site) -> bool:
    """Whether the elements have 8 bits, and the places of the greatest are asked for."""
    return site.is_("MaxPool") and site.has_output(1) and site.elem_type(site.input(0)) in _EIGHT


def pool_indices(site: Site) -> Iterator[ModelProto]:
    """Find them among floating-point numbers, the lowest of which no integer of 8 bits reaches."""
    if not indexes_eight_bits(site):
        return
    body = Body(site, site.opsets)
    wide = body.cast(site.input(0), TensorProto.FLOAT)
    greatest, places = body("MaxPool", wide, outputs=2, **site.attributes())
    yield body.finish(body.cast(greatest, site.elem_type(site.input(0))), places)
