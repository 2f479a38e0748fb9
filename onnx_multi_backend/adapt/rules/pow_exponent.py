# SPDX-License-Identifier: Apache-2.0
"""Rule: Pow with an exponent of a type that the kernel lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_WIDER: Mapping[int, int] = {
    _T.INT8: _T.INT32,
    _T.UINT8: _T.INT32,
    _T.INT16: _T.INT32,
    _T.UINT16: _T.INT32,
    _T.UINT32: _T.INT64,
    # Above 2**53 a double is an even number near by: no power of another number than 0, 1 and -1 is finite there.
    _T.UINT64: _T.DOUBLE,
    _T.INT64: _T.DOUBLE,
    _T.INT32: _T.DOUBLE,
    _T.FLOAT16: _T.FLOAT,
    _T.BFLOAT16: _T.FLOAT,
}


def pow_exponent(site: Site) -> Iterator[ModelProto]:
    """Give the exponent, whose type does not decide the result's, a wider type."""
    kind = site.elem_type(site.input(1))
    floats = (_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16)
    if not site.is_("Pow") or kind not in _WIDER or site.elem_type(site.input(0)) == kind:
        return
    if _WIDER[kind] == _T.DOUBLE and site.elem_type(site.input(0)) not in floats:
        return  # an integer's power is to be exact
    body = Body(site)
    yield body.finish(body("Pow", site.input(0), body.cast(site.input(1), _WIDER[kind])))
