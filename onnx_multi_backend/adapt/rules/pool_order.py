# SPDX-License-Identifier: Apache-2.0
"""Rule: MaxPool whose Indices count down the columns."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def counts_columns(site: Site) -> bool:
    """Whether Indices are asked for in the other storage order, and it makes a difference."""
    return (
        site.is_("MaxPool")
        and site.has_output(1)
        and bool(site.attribute("storage_order", 0))
        and len(site.attribute("kernel_shape", [])) > 1
    )


def pool_order(site: Site) -> Iterator[ModelProto]:
    """Count along the rows, and look up what the same element has where the columns come first."""
    if not counts_columns(site):
        return
    body, x, axes = Body(site, site.opsets), site.input(0), len(site.attribute("kernel_shape"))
    greatest, places = body("MaxPool", x, outputs=2, **site.attributes("storage_order"))
    last = [*range(axes + 1, 1, -1)]
    shape = body("Shape", x)
    turned = body("Gather", shape, body.ints(0, 1, *last), axis=0)
    zero, one = (body.constant(number, TensorProto.INT64) for number in (0, 1))
    counted = body("Range", zero, body("ReduceProd", shape, keepdims=0), one)
    table = body("Reshape", body("Transpose", body("Reshape", counted, turned), perm=[0, 1, *last]), body.ints(-1))
    yield body.finish(greatest, body("Gather", table, places, axis=0))
