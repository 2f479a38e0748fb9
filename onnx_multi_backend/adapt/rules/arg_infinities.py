# SPDX-License-Identifier: Apache-2.0
"""Rule: ArgMax and ArgMin of floating-point numbers, all of which may be infinite."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.extremes import LARGEST
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
#: Since this opset Gather counts from the end too.
_FROM_THE_END = 11


def arg_infinities(site: Site) -> Iterator[ModelProto]:
    """Put 0 for an index beyond the axis. Source: the operators' documentation: among equal numbers, the first is meant.

    A kernel that begins with the lowest finite number finds no number above it among -inf alone, and returns an index beyond the axis. Where
    that number stands among them, it should be found, and 0 is too low.
    """
    x = site.input(0)
    if (
        not site.is_("ArgMax", "ArgMin")
        or site.attribute("select_last_index", 0)
        or site.elem_type(x) not in LARGEST
        or GUARDED in site.node.name
    ):
        return
    body = Body(site) if site.opset < _FROM_THE_END else Body(site, site.opsets)
    index = body(site.op_type, x, name=GUARDED, **site.attributes())
    axis, zero = (body.constant(number, _T.INT64) for number in (site.attribute("axis", 0), 0))
    inside = body("Less", index, body("Gather", body("Shape", x), axis))
    yield body.finish(body("Where", inside, index, zero))
