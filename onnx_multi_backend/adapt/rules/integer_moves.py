# SPDX-License-Identifier: Apache-2.0
"""Operators that move integers as float32 numbers: the halves of an integer are exact there."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_HALF = 2**16
#: Since this opset the second input of Resize is a region, and the scales are the third.
_WITH_REGION = 11


def in_halves(body: Body, site: Site, kind: int) -> str | None:
    """Move the upper and the lower 16 bits of each element, and put them together again."""
    if site.op_type in ("Resize", "Upsample") and site.attribute("mode", "nearest") != "nearest":
        return site.input(0) if _leaves_all_sizes(site) else None
    if _crops(site):  # what lies outside would come out of both halves
        return None
    lower = body("BitwiseAnd", site.input(0), body.constant(_HALF - 1, kind))
    base = body.constant(_HALF, kind)
    upper = body("Div", body("Sub", site.input(0), lower), base, name=GUARDED)
    upper, lower = (_moved(body, site, half) for half in (upper, lower))
    return str(body("Add", body("Mul", upper, base), lower))


def _leaves_all_sizes(site: Site) -> bool:
    """Whether the scales are known, and are 1: then nothing is interpolated."""
    scales = site.constant(site.input(2 if site.op_type == "Resize" and site.opset >= _WITH_REGION else 1))
    given = site.attribute("scales", []) if scales is None else scales
    return np.ndim(given) == 1 and len(given) > 0 and not _crops(site) and all(scale == 1 for scale in given)


def _crops(site: Site) -> bool:
    return bool(site.attribute("coordinate_transformation_mode") == "tf_crop_and_resize")


def _moved(body: Body, site: Site, x: str) -> str:
    own = NodeProto()
    own.CopyFrom(site.node)
    own.input[0] = x
    own.name = GUARDED
    return body.add(own)[0]


def lower_triangle(body: Body, site: Site, kind: int) -> str:
    """Trilu: multiply by a triangle of ones."""
    own = NodeProto()
    own.CopyFrom(site.node)
    own.input[0] = body("Expand", body.constant(1, kind), body("Shape", site.input(0)))
    own.name = GUARDED
    return str(body("Mul", site.input(0), body.add(own)[0]))
