# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that OpenVINO (2026.4) accepts, and then computes wrongly or refuses when it runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.beyond_int32 import WIDE
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.compress_nothing import chooses_nothing
from onnx_multi_backend.adapt.rules.expand_to_nothing import comes_to_nothing
from onnx_multi_backend.adapt.rules.loop_of_no_steps import runs_never, runs_once
from onnx_multi_backend.adapt.rules.loop_rows import collects
from onnx_multi_backend.adapt.rules.loop_states import unread_states
from onnx_multi_backend.adapt.rules.no_axes import has_no_axes
from onnx_multi_backend.adapt.rules.roi_samples import leaves_samples_out
from onnx_multi_backend.adapt.rules.unique_order import elements_in_order_alone
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines import defect
from onnx_multi_backend.engines.attention import as_many_queries
from onnx_multi_backend.engines.defect import FindDefect, Only, Several
from onnx_multi_backend.engines.openvino import form_defects, fused, special_values
from onnx_multi_backend.engines.openvino.doubtful import may_be_meant
from onnx_multi_backend.engines.openvino.resize_defects import resized
from onnx_multi_backend.host.applies import When
from onnx_multi_backend.models.graph_walk import canonical

#: A BitShift of an input by a larger constant leaves so few numbers that `adapt.bounds` does not hold the input to them.
_FURTHEST_HELD = 25


def _attention(site: Site) -> Defect | None:
    if any(site.attribute(name, -1) >= 0 for name in ("left_window_size", "right_window_size")):
        return Defect("the window is ignored (openvinotoolkit/openvino#37820)", wrong=True)
    if site.attribute("is_causal", 0) and (site.has_input(6) or (site.has_input(4) and not as_many_queries(site))):
        return Defect("the causal mask is aligned to the last key, ONNX's to the length of the past", wrong=True)
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
    return Defect("shifts are products and quotients: wrong for negative numbers, overflow and shifts out of range")


def _cast(site: Site) -> Defect | None:
    if site.attribute("to") == TensorProto.FLOAT8E8M0:
        return Defect("round_mode is ignored: only powers of two are right")
    return None


def _without_axes(site: Site) -> Defect | None:
    """Source: measured; with Tile, and with Unsqueeze in 2025.4, it is refused."""
    return Defect("with a list of no axes, an axis is added", wrong=True) if has_no_axes(site) else None


def _alone_without_axes(site: Site) -> Defect | None:
    """Source: measured, where the execution provider takes nothing else."""
    if has_no_axes(site):
        return Defect("alone, with a list of no axes, it ends the process", wrong=True, deadly=True)
    return None


def _expand(site: Site) -> Defect | None:
    if comes_to_nothing(site):
        return Defect("expanding to nothing is left out, or ends the process", wrong=True, deadly=True)
    return None


def _compress(site: Site) -> Defect | None:
    if chooses_nothing(site):
        return Defect("choosing nothing, which is known, ends the process", wrong=True, deadly=True)
    return None


def _fourier(site: Site) -> Defect | None:
    """Source: measured for two to four axes, and each opset."""
    if site.attribute("onesided", 0):
        return Defect("a one-sided transform keeps the last axis of its input", wrong=True)
    rank = site.rank(site.input(0))
    if site.opset < 20:
        if site.attribute("axis", 1) >= 0:
            return None
        return Defect("an axis that counts from the end is counted without the last one", wrong=True)
    axis = site.constant(site.input(2)) if site.has_input(2) else np.array(-2)
    if axis is not None and (axis == 1 or (rank is not None and axis + rank == 1)):
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


def _recurrent(site: Site) -> Defect | None:
    if 0 in (site.shape(site.input(0)) or ()):
        return Defect("a layer without steps, batch or features ends the process", wrong=True)
    return Defect("layout=1 is ignored", wrong=True) if site.attribute("layout", 0) else form_defects.lengths(site)


def _loop(site: Site) -> Defect | None:
    if runs_never(site):
        return Defect("a loop of no steps gives zeros, not the initial values", wrong=True)
    if not runs_once(site) and unread_states(site):
        return Defect("a state that the body does not read is not written where the loop makes no step", wrong=True)
    if GUARDED not in site.node.name and collects(site):
        return Defect("where a loop makes no step, the rows of the run before are given once more", wrong=True)
    return None


def _lstm(site: Site) -> Defect | None:
    if site.has_input(7) and ((weights := site.constant(site.input(7))) is None or weights.any()):
        return Defect("the peepholes (input P) are ignored", wrong=True)
    if site.attribute("input_forget", 0):
        return Defect("input_forget=1 is ignored", wrong=True)
    return _recurrent(site)


def _pad(site: Site) -> Defect | None:
    shape = site.shape(site.input(0))
    pads = np.array(site.attribute("pads")) if site.attribute("pads") else site.constant(site.input(1))
    axes = site.constant(site.input(3)) if site.has_input(3) else range(len(shape or ()))
    if shape is None or pads is None or axes is None or np.ndim(axes) != 1 or pads.size != 2 * len(axes):
        return None
    for i, axis in enumerate(axes):
        size, begin, end = shape[int(axis)], pads[i], pads[i + len(axes)]
        if size is not None and size + min(int(begin), 0) + min(int(end), 0) < 0:
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


def _scan(site: Site) -> Defect | None:
    body, scanned = site.attribute("body"), site.attribute("num_scan_inputs", 0)
    if site.opset < 9:
        return None
    states = len(body.input) - scanned
    passed_on = {(node.input[0], node.output[0]) for node in body.node if node.op_type == "Identity"}
    varying = {v.name for v in body.input[states:]}
    ends = list(zip(body.input[:states], body.output, strict=False))
    varying.update(a.name for a, b in ends if a.name != b.name and (a.name, b.name) not in passed_on)
    for node in body.node:
        if not varying.isdisjoint(reads(node)):
            varying.update(node.output)
    if all(v.name in varying for v in body.output[states:]):
        return None
    return Defect("what every step makes alike is given once, not once a step", wrong=True)


def _softsign(site: Site) -> Defect | None:
    return Defect("the result is 1 everywhere, and NaN at 0", wrong=True)


def _space_to_depth(site: Site) -> Defect | None:
    return Defect("mode is ignored", wrong=True) if site.attribute("mode", "DCR") != "DCR" else None


def _tile(site: Site) -> Defect | None:
    """Source: measured for up to 6 axes; with 3 axes, three repeats above 1 are right."""
    rank = site.rank(site.input(0))
    known = site.opset < 6 or site.constant(site.input(1)) is not None
    if known or (rank is not None and rank < 4) or GUARDED in site.node.name:
        return None
    return Defect(
        "where the repeats are known only at run time, three or more of them leave the output unwritten", wrong=True
    )


def _unique(site: Site) -> Defect | None:
    if elements_in_order_alone(site):
        return Defect("sorted=0 gives zeros unless inverse_indices are asked for", wrong=True)
    return None


_COLUMN = Only({"instruction_set": "avx512f"}, form_defects.column)
_WITHOUT_AXES = (Only({"openvino": ">=2026"}, _without_axes), Only({"openvino": "<2026"}, _alone_without_axes))

DEFECTS: Mapping[str, FindDefect] = {
    "Attention": _attention,
    "AveragePool": Several((Only({"openvino": "<2026"}, form_defects.pooled), form_defects.averaged)),
    "BitShift": _bit_shift,
    "Cast": _cast,
    "Celu": special_values.find,
    "CenterCropPad": Only({"openvino": "<2026"}, form_defects.centered),
    "Compress": _compress,
    "Conv": Several((Only({"openvino": "<2026"}, form_defects.convolved), _COLUMN)),
    "ConvInteger": _COLUMN,
    "ConvTranspose": Several((Only({"openvino": "<2026"}, form_defects.convolved), form_defects.conv_transpose)),
    "DFT": _fourier,
    "DequantizeLinear": Several((form_defects.dequantized, form_defects.scaled)),
    "Expand": Several((*_WITHOUT_AXES, _expand)),
    "GRU": _recurrent,
    "Gather": Several((Only({"openvino": ">=2026"}, form_defects.gather_empty), form_defects.gather)),
    "GatherND": _gather_nd,
    "Gemm": form_defects.gemm,
    "HardSigmoid": form_defects.zeros,
    "If": Only({"openvino": "<2026"}, form_defects.branches),
    "LRN": Several((form_defects.lrn, Only({"openvino": "<2026"}, form_defects.normalized_channels))),
    "LSTM": _lstm,
    "Loop": _loop,
    "LpNormalization": form_defects.lp_normalization,
    "MatMulInteger": form_defects.matmul_integer,
    "MaxPool": Several((form_defects.indexed, form_defects.pooled)),
    "Mod": form_defects.remainder,
    "NonMaxSuppression": form_defects.non_max_suppression,
    "NonZero": form_defects.non_zero,
    "PRelu": form_defects.prelu,
    "Pad": Several(
        (
            _pad,
            Only({"openvino": "<2026"}, form_defects.padded),
            form_defects.padded_at_run_time,
            Only({"openvino": ">=2026"}, form_defects.padded_by_computed),
        )
    ),
    "QLinearConv": Several((form_defects.quantized_channels, form_defects.scaled, _COLUMN)),
    "QLinearMatMul": form_defects.scaled,
    "QuantizeLinear": Several(
        (
            Only({"openvino": ">=2026"}, form_defects.quantize_wide),
            Only({"openvino": "<2026"}, form_defects.quantize_as_named),
            form_defects.quantize_along,
            form_defects.quantized_at_run_time,
        )
    ),
    "RNN": _recurrent,
    "Range": form_defects.range_,
    "ReduceL1": form_defects.reduced,
    "ReduceL2": form_defects.reduced,
    "ReduceLogSum": Only({"openvino": ">=2026"}, form_defects.reduced),
    "ReduceLogSumExp": Several(
        (
            Only({"openvino": ">=2026"}, Several((form_defects.reduced, form_defects.infinite_constant))),
            Only({"openvino": "<2026"}, form_defects.exponentials),
        )
    ),
    "ReduceMax": special_values.find,
    "ReduceMin": special_values.find,
    "Resize": resized,
    "RoiAlign": Several((_roi_align, Only({"openvino": ">=2026"}, _roi_samples))),
    "Scan": _scan,
    "Selu": form_defects.zeros,
    "Shrink": form_defects.shrink,
    "Slice": form_defects.sliced,
    "Softmax": form_defects.softmax,
    "Softsign": Only({"instruction_set": "!avx"}, _softsign),
    "SpaceToDepth": _space_to_depth,
    "ThresholdedRelu": special_values.find,
    "Tile": _tile,
    "Unique": _unique,
    "Unsqueeze": Several(_WITHOUT_AXES),
}

#: The operators of which `may_have_defect` may be true.
OPERATORS = frozenset({fused.FUSED, *DEFECTS})


def may_have_defect(node: NodeProto, facts: Facts, inside: When | None = None) -> bool:
    """Whether `find` may know something of a node."""
    if node.op_type == fused.FUSED:
        return True
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
    if site.op_type == fused.FUSED:
        return fused.find(site)
    found = DEFECTS.get(site.op_type) if not site.domain else None
    return defect.find(found, site, inside) if found else None
