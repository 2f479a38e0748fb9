# SPDX-License-Identifier: Apache-2.0
"""Rule: Pad with a value that is known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.passes.wider_types import FLOATS
from onnx_multi_backend.adapt.site import Body, Site

_COUNTED = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64)


def is_padded_at_run_time(site: Site) -> bool:
    """Whether the value is neither a constant nor left out, and the rank is known."""
    return _has_value(site) and not site.is_known(site.input(2)) and site.rank(site.input(0)) is not None


def _has_value(site: Site) -> bool:
    return site.is_("Pad") and site.attribute("mode", "constant") == "constant" and site.has_input(2)


def pad_value(site: Site) -> Iterator[ModelProto]:
    """Choose the value where a padded tensor of ones has zeros; integers move through that whatever they are."""
    kind = site.elem_type(site.input(0))
    if site.has_input(3) or GUARDED in site.node.name or kind == TensorProto.STRING:
        return
    if is_padded_at_run_time(site) or (_has_value(site) and kind in _COUNTED):
        body = Body(site)
        yield body.finish(padded_with_value(body, site, site.input(1)))


def padded_with_value(body: Body, site: Site, pads: str) -> str:
    """The nodes for pads of all axes. Engines that have floats of 8 bits do not choose between them."""
    x, value, kind = site.input(0), site.input(2), site.elem_type(site.input(0))
    narrow = kind in FLOATS
    if narrow:
        x, value, kind = body.cast(x, TensorProto.FLOAT), body.cast(value, TensorProto.FLOAT), TensorProto.FLOAT
    counted = kind if kind in _COUNTED else TensorProto.FLOAT

    def padded(data: str, of: int) -> str:
        return str(body("Pad", data, pads, body.constant(0, of), name=GUARDED))

    one = body.constant(1, counted)
    inside = body("Equal", padded(body("Expand", one, body("Shape", x)), counted), one)
    result = str(body("Where", inside, padded(x, kind), value))
    return body.cast(result, site.elem_type(site.input(0))) if narrow else result
