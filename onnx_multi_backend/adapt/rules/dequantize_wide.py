# SPDX-License-Identifier: Apache-2.0
"""Rule: integers that a DequantizeLinear turns into a type of 16 bits, which need not hold them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype

_T = TensorProto
#: The integers, and the floating-point numbers that do not hold all of them.
WIDE = (_T.INT16, _T.UINT16, _T.INT32)
HALVES = frozenset({_T.FLOAT16, _T.BFLOAT16})


def is_wide(site: Site) -> bool:
    """Whether a DequantizeLinear makes floating-point numbers of 16 bits of wide integers."""
    return (
        site.is_("DequantizeLinear")
        and site.elem_type(site.input(0)) in WIDE
        and not HALVES.isdisjoint((site.elem_type(site.input(1)), dequantized_type(site)))
    )


def dequantized_type(site: Site) -> int:
    """The element type of what a DequantizeLinear makes."""
    return site.attribute("output_dtype", 0) or site.elem_type(site.input(1))


def holds_its_constants(site: Site) -> bool:
    """Whether what it reads that is known before anything runs, the zero point too, are numbers of the type that it makes."""
    kinds = HALVES & {site.elem_type(site.input(1)), dequantized_type(site)}
    known = [site.constant(name) for name in site.node.input[::2] if site.is_known(name)]
    return all(_is_held(constant, kind) for constant in known for kind in kinds)


def _is_held(constant: np.ndarray | None, kind: int) -> bool:
    if constant is None:
        return False
    with np.errstate(over="ignore"):
        return bool((constant.astype(numpy_dtype(kind)).astype(np.float64) == constant).all())


def dequantize_wide(site: Site) -> Iterator[ModelProto]:
    """Scale in float32, and round what comes out."""
    if not is_wide(site):
        return
    x, scale, *zero = site.node.input
    made = dequantized_type(site)
    body = Body(site, site.opsets)
    scaled = body("DequantizeLinear", x, body.cast(scale, _T.FLOAT), *zero, **site.attributes("output_dtype"))
    yield body.finish(scaled if made == _T.FLOAT else body.cast(scaled, made))
