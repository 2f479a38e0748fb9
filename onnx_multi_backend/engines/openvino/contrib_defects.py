# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO (2025.4, 2026.4) makes of operators of ONNX Runtime's domain, as its optimizers write them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.rules.attention_scale import has_usual_scale
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.openvino import quantized_operators
from onnx_multi_backend.host.applies import When

#: The axis of the keys' length by their rank: of keys, of those with heads, of keys and values in one.
_LENGTHS = {3: 1, 4: 2, 5: 1}
_RIGHT = ("", "Relu", "LeakyRelu")
#: OpenVINO adds -10000 to a score that is masked. What is below this leaves no weight to it either, whatever the scores of the others are in
#: practice.
_FILTERED = -1000.0
#: The place of the mask among the inputs of an Attention, and of the cache among those of a GroupQueryAttention.
_MASK, _PAST = 3, 3
#: The places of the bias and of the mask among the inputs of a MultiHeadAttention.
_BIAS, _PADDING = 3, 4

#: The places of the scales and zero points of constant weights, which are the second input.
_WEIGHTS_SCALED = {"MatMulIntegerToFloat": (3, 5), "MatMulNBits": (2, 3)}


def _fused(site: Site) -> Defect | None:
    if site.attribute("activation", "") in _RIGHT:
        return None
    return Defect("another activation than Relu and LeakyRelu is taken for Relu", wrong=True)


def _attention(site: Site) -> Defect | None:
    if site.attribute("scale", 0.0) and not has_usual_scale(site):
        return Defect("scale is ignored", wrong=True)
    if site.has_input(_MASK) and site.attribute("mask_filter_value", _FILTERED) > _FILTERED:
        return Defect("mask_filter_value is ignored", wrong=True)
    return None


def _quantized_layer(site: Site) -> Defect | None:
    if 0 in (site.shape(site.input(0)) or ()):
        return Defect("a layer without steps, batch or features ends the process", wrong=True, deadly=True)
    return None


def _group_query_attention(site: Site) -> Defect | None:
    if site.has_input(_PAST) and 0 in (site.shape(site.input(_PAST)) or ()):
        return Defect("of a cache that is known to be empty, memory that was never written is the result", wrong=True)
    return None


def _multi_head_attention(site: Site) -> Defect | None:
    if site.has_input(_BIAS) and site.rank(site.input(1)) in (4, None):
        return Defect("the bias is added to keys and values that are projected already", wrong=True)
    masked = site.has_input(_PADDING) or site.attribute("unidirectional", 0)
    if masked and site.attribute("mask_filter_value", _FILTERED) > _FILTERED:
        return Defect("mask_filter_value is ignored", wrong=True)
    queries, keys = site.shape(site.input(0)), site.shape(site.input(1)) if site.has_input(1) else None
    length = keys[_LENGTHS[len(keys)]] if keys and len(keys) in _LENGTHS else None
    lengths = {length, queries[1] if queries and len(queries) > 1 else None}
    if site.attribute("unidirectional", 0) and len(lengths) == 2 and None not in lengths:
        return Defect("unidirectional counts the first keys alone where there are more than queries", wrong=True)
    return None


def _pad(site: Site) -> Defect | None:
    constant = site.attribute("mode", "constant") == "constant"
    if constant and site.has_input(2) and not site.is_known(site.input(2)):
        return Defect("a value known only at run time may be taken for 0", wrong=True)
    return None


def _dynamic_quantize_matmul(site: Site) -> Defect | None:
    return Defect("the first operand is not quantized", wrong=True)


def _scaled_in_place(site: Site) -> Defect | None:
    """Source: measured."""
    given = [site.input(place) for place in _WEIGHTS_SCALED[site.op_type] if site.has_input(place)]
    if site.is_known(site.input(1)) and not all(map(site.is_known, given)):
        return Defect(
            "constant weights are scaled in place by what only a run tells, once more in each run", wrong=True
        )
    return None


def _rotary_embedding(site: Site) -> Defect | None:
    if site.rank(site.input(1)) != 2:
        return Defect("position_ids of one element are taken for the positions, not for the first one", wrong=True)
    if site.attribute("rotary_embedding_dim", 0):
        return Defect(
            "rotary_embedding_dim leaves other elements as they are, or takes others for the second half", wrong=True
        )
    return None


CONTRIB: Mapping[str, Callable[[Site], Defect | None]] = {
    "Attention": _attention,
    "DynamicQuantizeLSTM": _quantized_layer,
    "DynamicQuantizeMatMul": _dynamic_quantize_matmul,
    "FusedGemm": _fused,
    "GroupQueryAttention": _group_query_attention,
    "MatMulIntegerToFloat": _scaled_in_place,
    "MatMulNBits": _scaled_in_place,
    "MultiHeadAttention": _multi_head_attention,
    "Pad": _pad,
    "RotaryEmbedding": _rotary_embedding,
}


def operators(inside: When | None) -> Collection[str]:
    """The operators of which something may be wrong; an execution provider leaves the quantized ones to the CPU provider."""
    return CONTRIB.keys() | quantized_operators.OPERATORS if inside is None else CONTRIB.keys()


def find(site: Site, inside: When | None = None) -> Defect | None:
    """What is wrong with a node of that domain; None where nothing is known."""
    if site.domain != DOMAIN or site.op_type not in operators(inside):
        return None
    if site.op_type in quantized_operators.OPERATORS:
        return Defect("this form is not written with Q/DQ nodes, and OpenVINO's own is wrong", wrong=True)
    return CONTRIB[site.op_type](site)
