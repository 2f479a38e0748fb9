# SPDX-License-Identifier: Apache-2.0
"""Rule: a DequantizeLinear whose zero point, scaled, is large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.along_axis import along_axis
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
#: Of a scaled zero point, which is rounded to 7 digits: what is left of 0 then does not count yet.
_MOST = 1e5
#: By the type of a scale, what it is at most where no zero point of 16 bits, scaled, is beyond that, or infinite.
LARGEST_SCALES: Mapping[int, float] = {_T.FLOAT: 1.5, _T.BFLOAT16: 1.5, _T.FLOAT16: 0.99}
_INTEGERS = (_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32)


def offset(site: Site) -> float:
    """The largest scaled zero point of a DequantizeLinear in the type of its scale, as far as is known: 0 below what counts."""
    scale, zero = (site.constant(site.input(i)) if site.has_input(i) else None for i in (1, 2))
    if not site.is_("DequantizeLinear") or site.attribute("block_size", 0) or scale is None or zero is None:
        return 0.0
    if not zero.any() or zero.size != scale.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.abs(zero.ravel().astype(np.float64) * scale.ravel().astype(np.float64))
        found = float(np.nan_to_num(exact, nan=0.0, posinf=np.inf).astype(scale.dtype).max())
    return found if found > _MOST else 0.0


def dequantize_large(site: Site) -> Iterator[ModelProto]:
    """Subtract the zero point as an integer, then scale in float32. Source: DequantizeLinear's documentation."""
    if not offset(site) or site.elem_type(site.input(0)) not in _INTEGERS:
        return
    x, scale, zero = site.node.input
    body = Body(site, site.opsets)
    along = along_axis(body, site)
    if along is None:
        return
    apart = body("Sub", body.cast(x, _T.INT32), along(body.cast(zero, _T.INT32)))
    made = body("Mul", body.cast(apart, _T.FLOAT), along(body.cast(scale, _T.FLOAT)))
    kind = site.attribute("output_dtype", 0) or site.elem_type(scale)
    yield body.finish(made if kind == _T.FLOAT else body.cast(made, kind))
