# SPDX-License-Identifier: Apache-2.0
"""Forms of quantized operators that OpenVINO (2025.4, 2026.4) accepts and computes wrongly."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.rules.dequantize_large import offset
from onnx_multi_backend.adapt.rules.dequantize_wide import dequantized_type, holds_its_constants, is_wide
from onnx_multi_backend.adapt.rules.named_type import names_its_type
from onnx_multi_backend.adapt.rules.quantize import made_type
from onnx_multi_backend.adapt.rules.quantized_products import convolves_constants, scales_channels
from onnx_multi_backend.adapt.rules.run_time_scales import scaled_at_run_time
from onnx_multi_backend.adapt.rules.scalar_scales import scales_a_scalar
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.tensors import numpy_dtype

_SIXTEEN = (TensorProto.INT16, TensorProto.UINT16)

#: The lowest integer of the types of 8 bits.
_LOWEST: dict[int, int] = {TensorProto.INT8: -128, TensorProto.UINT8: 0}

#: How far above its type's lowest integer a zero point lies for which OpenVINO may take the two ends of the range for one.
_MIXED_UP = frozenset({34, 102, 128, 132, 136, 153, 210, 221})


def _has_blocks_behind(site: Site) -> bool:
    """Whether there are blocks, and they may lie along another axis than the first."""
    if not site.is_("DequantizeLinear") or not site.attribute("block_size", 0):
        return False
    rank, axis = site.rank(site.input(0)), site.attribute("axis", 1)
    return bool(axis and (rank is None or axis != -rank))


def quantize_wide(site: Site) -> Defect | None:
    if made_type(site) in _SIXTEEN:
        return Defect("quantizing to 16 bits is left out, and with it the limits of the type", wrong=True)
    return None


def quantize_large(site: Site) -> Defect | None:
    """Source: measured; OpenVINO multiplies the scaled limits of the type by their number, or takes the difference between them.

    ONNX Runtime's quantizer writes such scales for attention masks that hold the lowest float32.
    """
    scale, kind = site.constant(site.input(1)), made_type(site)
    if scale is None or scale.dtype != np.float32 or kind not in (*_LOWEST, *_SIXTEEN):
        return None
    limits = np.iinfo(numpy_dtype(kind))
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isinf(scale * np.float32(limits.max - limits.min) ** 2).any():
            return None
    return Defect(
        "the scaled limits of the type are more than float32 holds, and each result is the lowest", wrong=True
    )


def dequantize_large(site: Site) -> Defect | None:
    """Source: measured; OpenVINO subtracts the scaled zero point, which it may have rounded: of 0 in an attention mask something large is left."""
    if (found := offset(site)) and np.isinf(found):
        return Defect("the scaled zero point is infinite, and so is each result", wrong=True)
    return Defect("the zero point is scaled before it is subtracted, and rounded") if found else None


def quantize_as_named(site: Site) -> Defect | None:
    """Source: measured."""
    if names_its_type(site):
        return Defect("output_dtype is ignored: without a zero point, the result is limited as uint8 is", wrong=True)
    return None


def quantize_along(site: Site) -> Defect | None:
    """Source: measured; where the sizes of the two axes differ it is refused when it runs.

    Of three axes or more, scales along the last one are taken along the second, where an operator on elements or a normalization is before it.
    OpenVINO forgets a size that ONNX's inference knows of what a Scan or Loop gives, where other sizes are open.
    """
    shape, scales = site.shape(site.input(0)), site.shape(site.input(1))
    axis = site.attribute("axis", 1)
    if scales in ([], [1]):
        return None
    if shape is not None and (not -len(shape) <= axis < len(shape) or len(shape) == 1):
        return None
    if shape is not None and axis % len(shape) == 1 and (len(shape) == 2 or None not in shape):
        return None
    if shape is not None and None not in shape:
        if len(shape) == 2:
            return None
        return Defect(
            "scales along another axis than the second are refused, where they do not follow an operator on elements"
        )
    return Defect(
        "of a shape that is known only at run time, scales are taken along another axis",
        wrong=True,
        grouped=shape is not None,
    )


def quantized_at_run_time(site: Site) -> Defect | None:
    """Source: measured with 2025.4 and 2026.4, in one process of fifty, and ``src/common/snippets/src/pass/hash.cpp``.

    The ends of the range are two products of the scale and a constant. OpenVINO compiles those of one hash once, and the hash of
    some pairs of constants is the same, by the addresses at which the process has loaded its libraries.
    """
    lowest = _LOWEST.get(made_type(site))
    if lowest is None or site.shape(site.input(1)) not in ([], [1]) or site.is_known(site.input(1)):
        return None
    zero = site.constant(site.input(2)) if site.has_input(2) else np.zeros(1)
    if zero is None or zero.size != 1 or int(zero.flat[0]) - lowest not in _MIXED_UP:
        return None
    return Defect("of a scale known only at run time, both ends of the range may be taken for one", wrong=True)


def dequantized(site: Site) -> Defect | None:
    """Source: measured; what is given at run time is computed in float32, but for bfloat16."""
    if is_wide(site) and (
        TensorProto.BFLOAT16 in (site.elem_type(site.input(1)), dequantized_type(site)) or not holds_its_constants(site)
    ):
        return Defect("integers are limited and rounded to 16 bits before they are scaled", wrong=True)
    return None


def scaled_scalar(site: Site) -> Defect | None:
    """Source: measured; ONNX Runtime takes such a scale for a number too."""
    if scales_a_scalar(site):
        return Defect("a scalar gets the axis that its scale has", wrong=True)
    return None


def scaled(site: Site) -> Defect | None:
    """Source: measured; in MatMul, Gemm and Conv behind it alone, and of integers of 16 and 32 bits in none."""
    if site.elem_type(site.input(0)) in (TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32):
        return None
    if scaled_at_run_time(site):
        return Defect("constant weights with a scale known only at run time are scaled again in every run", wrong=True)
    return None


def scaled_in_branches(site: Site) -> Defect | None:
    """Source: measured with 2025.4, in ONNX Runtime's provider: a quantized Conv in the branches of an If ends the process while it compiles."""
    found = scaled(site)
    return found._replace(deadly=True) if found is not None else None


def quantized_channels(site: Site) -> Defect | None:
    """Source: measured; where the numbers of channels differ it is refused."""
    if scales_channels(site):
        return Defect("scales of the output channels are taken for those of the input channels", wrong=True)
    return None


def quantized_constants(site: Site) -> Defect | None:
    """Source: measured; with zero points of 0, and of what is computed, it is right."""
    zeros = [site.constant(site.input(i)) for i in (2, 5)]
    if convolves_constants(site) and any(zero is None or zero.any() for zero in zeros):
        return Defect("of a constant image and constant weights, the difference to a zero point is limited", wrong=True)
    return None


def matmul_integer(site: Site) -> Defect | None:
    if site.rank(site.input(0)) == 1:
        return Defect("the axis that a vector is given is left in the result", wrong=True)
    return None


def dequantized_in_blocks(site: Site) -> Defect | None:
    """Source: measured with 2025.4; along the first axis it is right."""
    if _has_blocks_behind(site):
        return Defect("the scales of blocks are dealt out in turn (openvinotoolkit/openvino#32918)", wrong=True)
    return None
