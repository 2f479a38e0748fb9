# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that ONNX Runtime accepts, and then computes wrongly or refuses when it runs (1.24 and 1.31)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.site import Site

Defect = Callable[[Site], "str | None"]

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def _attention(site: Site) -> str | None:
    masked = site.has_input(3) or site.attribute("is_causal", 0)
    if masked and site.has_output(3):
        return "masked elements of qk_matmul_output are the lowest finite number, not -inf"
    if site.has_input(3) and site.has_input(6):
        return "a mask beside nonpad_kv_seqlen is refused at run time unless it is as wide as the keys"
    if site.elem_type(site.input(0)) == TensorProto.FLOAT16:
        return "float16 is accumulated in float16"
    return None


def _conv_integer(site: Site) -> str | None:
    shape = site.shape(site.input(3)) if site.has_input(3) else []
    if shape is None or (len(shape) == 1 and shape != [1]):
        return "a weight zero point for each channel is refused at run time"
    return None


def _fourier(site: Site) -> str | None:
    if site.elem_type(site.input(0)) == TensorProto.FLOAT:
        return "float32 is summed in float32: zeros come out as residues of up to 3e-4 (onnx/onnx#4798)"
    return None


def _max_unpool(site: Site) -> str | None:
    return "indices are taken into output_shape (onnx/onnx#2398)" if site.has_input(2) else None


def _mod(site: Site) -> str | None:
    if not site.attribute("fmod", 0) and site.elem_type(site.input(0)) in _FLOATS:
        return "fmod=0 of floating-point types is refused at run time"
    return None


def _reduce(site: Site) -> str | None:
    shape = site.shape(site.input(0))
    may_be_empty = shape is None or not all(shape)
    if may_be_empty and site.elem_type(site.input(0)) == TensorProto.BOOL:
        return "an empty set of bool is refused at run time"
    return None


def _prelu(site: Site) -> str | None:
    x, slope = site.shape(site.input(0)), site.shape(site.input(1))
    if x is None or slope is None:
        return None
    pairs = zip(reversed(x), reversed(slope), strict=False)
    if len(slope) > len(x) or any(s not in (1, None) and n is not None and s != n for n, s in pairs):
        return "a slope that does not broadcast is refused at run time"
    return None


DEFECTS: Mapping[str, Defect] = {
    "Attention": _attention,
    "ConvInteger": _conv_integer,
    "DFT": _fourier,
    "MaxUnpool": _max_unpool,
    "Mod": _mod,
    "PRelu": _prelu,
    "ReduceMax": _reduce,
    "ReduceMin": _reduce,
    "STFT": _fourier,
}


def _layout(site: Site) -> str | None:
    return "layout=1 is ignored (openvinotoolkit/openvino#37820)" if site.attribute("layout", 0) else None


#: Of the OpenVINO execution provider alone.
_OPENVINO: Mapping[str, Defect] = {"GRU": _layout, "LSTM": _layout, "RNN": _layout}


def distrusted_operators(*, openvino: bool) -> frozenset[str]:
    """The operators that `find` knows something of."""
    return frozenset({*DEFECTS, *(_OPENVINO if openvino else ())})


def find(site: Site, *, openvino: bool) -> str | None:
    """What is wrong with the engine's form of a node; None where nothing is known."""
    if site.domain:
        return None
    defect = DEFECTS.get(site.op_type) or (_OPENVINO.get(site.op_type) if openvino else None)
    return defect(site) if defect else None
