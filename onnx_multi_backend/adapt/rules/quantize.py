# SPDX-License-Identifier: Apache-2.0
"""Rule: QuantizeLinear."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.reciprocals import is_flushed
from onnx_multi_backend.adapt.rules.along_axis import along_axis
from onnx_multi_backend.adapt.rules.blocks import over_blocks
from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype

_T = TensorProto
_INTEGERS = (_T.INT8, _T.UINT8, _T.INT16, _T.UINT16)


def made_type(site: Site) -> int:
    """The element type of QuantizeLinear's result."""
    return site.elem_type(site.input(2)) or site.attribute("output_dtype", 0) or _T.UINT8


def quantize(site: Site) -> Iterator[ModelProto]:
    """Divide by the scale of the tensor, place or block, round half to even, add the zero point, and hold to the type's range.

    Source: QuantizeLinear's documentation.
    """
    if not site.is_("QuantizeLinear") or site.attribute("precision", 0):
        return
    x, scale, zero = (site.input(i) for i in range(3))
    kind, rank, blocks = made_type(site), site.rank(x), site.attribute("block_size", 0)
    known = site.constant(scale)
    if kind not in _INTEGERS or (known is not None and is_flushed(known)):
        return
    body = Body(site)
    if blocks:
        if rank is None or site.shape(scale) is None or not -rank <= site.attribute("axis", 1) < rank:
            return
        along = over_blocks(body, site)
    else:
        shaped = along_axis(body, site)
        if shaped is None:
            return

        def along(value: str) -> str:
            return shaped(value if site.elem_type(value) == _T.FLOAT else body.cast(value, _T.FLOAT))

    wide = x if site.elem_type(x) == _T.FLOAT else body.cast(x, _T.FLOAT)
    steps = body("Round", body("Div", wide, along(scale)))
    if zero:
        steps = body("Add", steps, along(zero))
    range_ = np.iinfo(numpy_dtype(kind))
    low, high = (body.constant(limit, _T.FLOAT) for limit in (range_.min, range_.max))
    yield body.finish(body.cast(body("Clip", steps, low, high, name=GUARDED), kind))
