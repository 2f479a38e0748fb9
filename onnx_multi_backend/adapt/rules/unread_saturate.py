# SPDX-License-Identifier: Apache-2.0
"""Rule: a Cast that says how float8 saturates, to another type."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_SATURATING = frozenset(kind for name, kind in TensorProto.DataType.items() if name.startswith("FLOAT8"))


def unread_saturate(site: Site) -> Iterator[ModelProto]:
    """Leave ``saturate`` out, which counts for float8 alone. Source: Cast's and CastLike's documentation."""
    if not site.is_("Cast", "CastLike") or site.attribute("saturate", None) is None:
        return
    kind = site.attribute("to") if site.op_type == "Cast" else site.elem_type(site.input(1))
    if kind is None or kind in _SATURATING:
        return
    body = Body(site)
    yield body.finish(body(site.op_type, *site.node.input, **site.attributes("saturate")))
