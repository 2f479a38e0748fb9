# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that OpenVINO (2026.4) accepts, and then computes wrongly or refuses when it runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.passes import broadcast_axes
from onnx_multi_backend.adapt.rules.compress_nothing import chooses_from_nothing, chooses_nothing
from onnx_multi_backend.adapt.rules.expand_to_nothing import comes_to_nothing
from onnx_multi_backend.adapt.rules.layer_scales import broadcast_scales
from onnx_multi_backend.adapt.rules.no_axes import has_no_axes
from onnx_multi_backend.adapt.rules.pad_crops import may_crop_too_much
from onnx_multi_backend.adapt.rules.roi_samples import leaves_samples_out
from onnx_multi_backend.adapt.rules.round_mode import to_powers
from onnx_multi_backend.adapt.rules.tile import repeats_open_axes
from onnx_multi_backend.adapt.rules.unique_axis import is_along_later_axis
from onnx_multi_backend.adapt.rules.unique_order import elements_in_order_alone
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines import defect
from onnx_multi_backend.engines.attention import as_many_queries
from onnx_multi_backend.engines.defect import FindDefect, Only, Several
from onnx_multi_backend.engines.openvino import (
    contrib_defects,
    form_defects,
    product_defects,
    quantized_defects,
    special_values,
    step_defects,
    window_defects,
)
from onnx_multi_backend.engines.openvino.doubtful import may_be_meant
from onnx_multi_backend.engines.openvino.quotient_defects import divided
from onnx_multi_backend.engines.openvino.resize_defects import resized
from onnx_multi_backend.host.applies import When
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import WIDE

#: A BitShift of an input by a larger constant leaves so few numbers that `adapt.bounds` does not hold the input to them.
_FURTHEST_HELD = 25


def _attention(site: Site) -> Defect | None:
    if any(site.attribute(name, -1) >= 0 for name in ("left_window_size", "right_window_size")):
        return Defect("the window is ignored (openvinotoolkit/openvino#37820)", wrong=True)
    if site.attribute("is_causal", 0) and (site.has_input(6) or (site.has_input(4) and not as_many_queries(site))):
        return Defect("the causal mask is aligned to the last key, ONNX's to the length of the past", wrong=True)
    if 0 in (site.shape(site.input(1)) or ()) and not site.has_input(4):
        return Defect("without keys the result is not written", wrong=True)
    return None


def _bit_shift(site: Site) -> Defect | None:
    if any(0 in (site.shape(name) or ()) for name in site.node.input):
        return None  # there is nothing to shift
    if site.elem_type(site.input(0)) in WIDE and site.attribute("direction") == "LEFT":
        value, amounts = site.value(site.input(0)), site.constant(site.input(1))
        furthest = int(amounts.max(initial=0)) if amounts is not None else 0
        if furthest > _FURTHEST_HELD and (value.high is None or int(value.high) << min(furthest, 64) >= 2**31):
            return Defect("a constant amount shifts beyond what int32 holds", wrong=True)
    if GUARDED in site.node.name:
        return None
    if all(site.rank(name) == 0 for name in site.node.input):
        return Defect("a scalar shifted by a scalar becomes a vector of one element", wrong=True)
    return Defect("shifts are products and quotients: wrong for negative numbers, overflow and shifts out of range")


def _cast(site: Site) -> Defect | None:
    if to_powers(site) and GUARDED not in site.node.name:
        return Defect("round_mode is ignored: only powers of two are right", wrong=True)
    return None


def _layer(site: Site) -> Defect | None:
    if broadcast_scales(site)[1]:
        return Defect("a scale of fewer axes than are normalized, or of more, is refused at run time")
    return None


def _without_axes(site: Site) -> Defect | None:
    """Source: measured; with Tile, and with Unsqueeze in 2025.4, it is refused."""
    return Defect("with an empty list of axes, an axis is added", wrong=True) if has_no_axes(site) else None


def _alone_without_axes(site: Site) -> Defect | None:
    """Source: measured, where the execution provider takes nothing else."""
    if has_no_axes(site):
        return Defect("alone, with an empty list of axes, it ends the process", wrong=True, deadly=True)
    return None


def _expand(site: Site) -> Defect | None:
    if comes_to_nothing(site):
        return Defect("an Expand to a shape without elements is left out, or ends the process", wrong=True, deadly=True)
    return None


def _compress(site: Site) -> Defect | None:
    if chooses_nothing(site):
        return Defect("a condition that is known to select nothing ends the process", wrong=True, deadly=True)
    if chooses_from_nothing(site):
        return Defect("a known condition on what has no elements ends the process", wrong=True, deadly=True)
    return None


def _fourier(site: Site) -> Defect | None:
    """Source: measured for two to four axes, and each opset."""
    if 0 in (site.shape(site.input(0)) or ())[1:]:
        return Defect("of a signal without elements the result is not written", wrong=True)
    if site.attribute("onesided", 0):
        return Defect("a one-sided transform keeps the last axis of its input", wrong=True)
    rank = site.rank(site.input(0))
    if site.opset < 20:
        if site.attribute("axis", 1) >= 0:
            return None
        return Defect("a negative axis is counted without the last one", wrong=True)
    axis = site.constant(site.input(2)) if site.has_input(2) else np.array(-2)
    if axis is not None and axis.size == 1 and (axis == 1 or (rank is not None and axis + rank == 1)):
        return None
    return Defect("the axis is ignored: axis 1 is transformed", wrong=True)


def _gather_nd(site: Site) -> Defect | None:
    shape, indices = site.shape(site.input(0)), site.constant(site.input(1))
    first = site.attribute("batch_dims", 0)
    if shape is None or indices is None or not indices.ndim:
        return None
    for place in range(indices.shape[-1]):
        size = shape[first + place] if first + place < len(shape) else None
        if size is not None and ((indices[..., place] >= size) | (indices[..., place] < -size)).any():
            return Defect("indices beyond the data are read anyway, which may end the process", wrong=True)
    return None


def _cropped(site: Site) -> Defect | None:
    if may_crop_too_much(site):
        return Defect("pads that only a run tells may crop more than there is, which ends the process", wrong=True)
    return None


def _pad(site: Site) -> Defect | None:
    shape = site.shape(site.input(0))
    pads = np.array(site.attribute("pads")) if site.attribute("pads") else site.constant(site.input(1))
    axes = site.constant(site.input(3)) if site.has_input(3) else range(len(shape or ()))
    if shape is None or pads is None or axes is None or np.ndim(axes) != 1 or pads.shape != (2 * len(axes),):
        return None
    if any(not -len(shape) <= int(axis) < len(shape) for axis in axes):
        return None
    for i, axis in enumerate(axes):
        size, begin, end = shape[int(axis)], pads[i], pads[i + len(axes)]
        least, most = min(int(begin), int(end)), max(int(begin), int(end))
        if (least < 0 < most) if size is None else size + min(int(begin), 0) + min(int(end), 0) < 0:
            return Defect("more is cropped than there is, which may end the process", wrong=True)
    return None


def _roi_align(site: Site) -> Defect | None:
    if site.attribute("mode", "avg") == "max":
        return Defect(
            "interpolated samples are compared, not corners times weights (microsoft/onnxruntime#6146)", wrong=True
        )
    return None


def _roi_samples(site: Site) -> Defect | None:
    """Source: measured; ONNX Runtime names the default in what it gives to the built-in execution provider."""
    if leaves_samples_out(site):
        return Defect("a sampling_ratio that is left out is taken for 1; the default is 0", wrong=True)
    return None


def _softsign(site: Site) -> Defect | None:
    return Defect("the result is 1 everywhere, and NaN at 0", wrong=True)


def _space_to_depth(site: Site) -> Defect | None:
    return Defect("mode is ignored", wrong=True) if site.attribute("mode", "DCR") != "DCR" else None


def _tile_by_known(site: Site) -> Defect | None:
    """Source: measured."""
    if not repeats_open_axes(site):
        return None
    return Defect("of several axes beside one of size 1, where sizes are open, other elements are repeated", wrong=True)


def _tile(site: Site) -> Defect | None:
    """Source: measured for up to 6 axes; with 3 axes, three repeats above 1 are right."""
    rank, repeats = site.rank(site.input(0)), site.shape(site.input(1)) if site.opset >= 6 else None
    if rank is None and repeats:
        rank = repeats[0]  # a repeat for each axis
    known = site.opset < 6 or site.constant(site.input(1)) is not None
    if known or (rank is not None and rank < 4) or GUARDED in site.node.name:
        return None
    return Defect(
        "where the repeats are known only at run time, three or more of them leave the output unwritten", wrong=True
    )


#: Of 8 bits.
_BYTES = (TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8)


def _unique(site: Site) -> Defect | None:
    if elements_in_order_alone(site):
        return Defect("sorted=0 gives zeros unless inverse_indices are requested", wrong=True)
    if is_along_later_axis(site):
        return Defect("along another axis than the first, equal slices are taken for different ones", wrong=True)
    if site.attribute("axis") is not None and site.elem_type(site.input(0)) in _BYTES:
        return Defect("along an axis, where elements of 8 bits are first and how often they are is wrong", wrong=True)
    return None


_COLUMN = Only({"instruction_set": "avx512f"}, window_defects.column)
_WITHOUT_AXES = (Only({"openvino": ">=2026"}, _without_axes), Only({"openvino": "<2026"}, _alone_without_axes))

DEFECTS: Mapping[str, FindDefect] = {
    "Attention": _attention,
    "AveragePool": Several(
        (
            Only({"openvino": "<2026"}, window_defects.pooled),
            Only({"openvino": "<2026"}, window_defects.pooled_to_same),
            window_defects.averaged,
            product_defects.unwritten,
        )
    ),
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Celu": special_values.find,
    "CenterCropPad": Only({"openvino": "<2026"}, window_defects.centered),
    "Clip": Only({"openvino": "<2026"}, form_defects.bounded_below),
    "Compress": _compress,
    "Conv": Several(
        (
            Only({"openvino": "<2026"}, window_defects.convolved),
            window_defects.strided_points,
            _COLUMN,
            product_defects.unwritten,
        )
    ),
    "ConvInteger": Several((_COLUMN, product_defects.unwritten)),
    "ConvTranspose": Several(
        (
            Only({"openvino": "<2026"}, window_defects.convolved),
            window_defects.conv_transpose,
            product_defects.unwritten,
        )
    ),
    "DFT": _fourier,
    "DequantizeLinear": Several(
        (
            Only({"openvino": "<2026"}, quantized_defects.dequantized_in_blocks),
            quantized_defects.dequantized,
            quantized_defects.dequantize_large,
            quantized_defects.scaled_scalar,
            Only({"openvino": "<2026"}, quantized_defects.scaled_in_branches),
            quantized_defects.scaled,
        )
    ),
    "Div": divided,
    "Expand": Several((*_WITHOUT_AXES, _expand)),
    "GRU": step_defects.recurrent,
    "Gather": Several((Only({"openvino": ">=2026"}, form_defects.gather_empty), form_defects.gather)),
    "GatherND": _gather_nd,
    "Einsum": product_defects.unwritten,
    "Gemm": Several((form_defects.gemm, product_defects.unwritten)),
    "GridSample": product_defects.unwritten,
    "HardSigmoid": form_defects.zeros,
    "If": Several((step_defects.scalars, Only({"openvino": "<2026"}, step_defects.branches))),
    "IsInf": form_defects.infinite,
    "LRN": Several((form_defects.lrn, form_defects.normalized_channels)),
    "LSTM": step_defects.lstm,
    "LayerNormalization": _layer,
    "Loop": step_defects.loop,
    "LpNormalization": form_defects.lp_normalization,
    "MatMul": product_defects.unwritten,
    "MatMulInteger": Several((quantized_defects.matmul_integer, product_defects.unwritten)),
    "LpPool": Several((window_defects.normed, product_defects.unwritten)),
    "MaxPool": Several((window_defects.indexed, window_defects.pooled, window_defects.pooled_to_same)),
    "Mod": form_defects.remainder,
    "NonMaxSuppression": form_defects.non_max_suppression,
    "NonZero": form_defects.non_zero,
    "PRelu": form_defects.prelu,
    "Pad": Several(
        (
            _pad,
            Only({"openvino": ">=2026"}, _cropped),
            Only({"openvino": "<2026"}, window_defects.padded),
            window_defects.padded_at_run_time,
            Only({"openvino": ">=2026"}, window_defects.padded_by_computed),
        )
    ),
    "QLinearConv": Several(
        (
            quantized_defects.quantized_channels,
            Only({"openvino": "<2026"}, quantized_defects.scaled_in_branches),
            quantized_defects.scaled,
            quantized_defects.quantized_constants,
            _COLUMN,
            product_defects.unwritten,
        )
    ),
    "QLinearMatMul": Several((quantized_defects.scaled, product_defects.unwritten)),
    "QuantizeLinear": Several(
        (
            Only({"openvino": ">=2026"}, quantized_defects.quantize_wide),
            quantized_defects.quantize_large,
            Only({"openvino": "<2026"}, quantized_defects.quantize_as_named),
            quantized_defects.scaled_scalar,
            quantized_defects.quantize_along,
            quantized_defects.quantized_at_run_time,
        )
    ),
    "RNN": step_defects.recurrent,
    "Range": form_defects.range_,
    "ReduceL1": form_defects.reduced,
    "ReduceL2": form_defects.reduced,
    "ReduceLogSum": Only({"openvino": ">=2026"}, form_defects.reduced),
    "ReduceLogSumExp": Several(
        (
            form_defects.exponentials_of_nothing,
            Only({"openvino": ">=2026"}, Several((form_defects.reduced, form_defects.infinite_constant))),
            Only({"openvino": "<2026"}, form_defects.exponentials),
        )
    ),
    "ReduceMax": special_values.find,
    **dict.fromkeys(("MeanVarianceNormalization", "ReduceMean"), form_defects.channel_mean),
    "ReduceMin": special_values.find,
    "Resize": resized,
    "RoiAlign": Several((_roi_align, Only({"openvino": ">=2026"}, _roi_samples), product_defects.unwritten)),
    "Scan": Several(
        (
            Only({"openvino": "<2026"}, step_defects.captured),
            step_defects.scan,
            step_defects.slices_passed_on,
            step_defects.uncounted,
        )
    ),
    "Selu": form_defects.zeros,
    **dict.fromkeys(("SequenceAt", "SequenceErase"), form_defects.positioned),
    "SequenceInsert": step_defects.inserted,
    "SplitToSequence": Only({"openvino": ">=2026"}, form_defects.split_into_many),
    "Shrink": form_defects.shrink,
    "Slice": form_defects.sliced,
    "Split": form_defects.split,
    "Softmax": form_defects.softmax,
    "Softsign": Only({"instruction_set": "!avx"}, _softsign),
    "SpaceToDepth": _space_to_depth,
    "ThresholdedRelu": special_values.find,
    "Tile": Several((Only({"openvino": ">=2026"}, _tile_by_known), _tile)),
    "TopK": Only({"openvino": "<2026"}, form_defects.top_k),
    "Transpose": form_defects.transpose,
    "Unique": _unique,
    "Unsqueeze": Several(_WITHOUT_AXES),
    **dict.fromkeys(broadcast_axes.OPERATORS, form_defects.aligned),
}

#: The operators of which `may_have_defect` may be true.
OPERATORS = frozenset({*contrib_defects.operators(None), *DEFECTS})


def may_have_defect(node: NodeProto, facts: Facts, inside: When | None = None) -> bool:
    """Whether `find` may know something of a node."""
    if node.domain == DOMAIN:
        return node.op_type in contrib_defects.operators(inside)
    if node.op_type not in DEFECTS or canonical(node.domain):
        return False
    return may_be_meant(node, facts) and defect.may_apply(DEFECTS[node.op_type], inside)


def find(site: Site, inside: When | None = None) -> Defect | None:
    """What is wrong with the engine's form of a node; None where nothing is known.

    Parameters
    ----------
    inside : mapping of str to str, optional
        The release of OpenVINO that computes it, where that is not the installed package's.
    """
    if site.domain:
        return contrib_defects.find(site, inside)
    found = DEFECTS.get(site.op_type)
    return defect.find(found, site, inside) if found else None
