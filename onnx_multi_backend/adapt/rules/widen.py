# SPDX-License-Identifier: Apache-2.0
"""Rule: types that a kernel lacks are computed in a wider type, and the result is cast back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.single_node import infer
from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.graph_walk import subgraphs
from onnx_multi_backend.models.plausible import MOST_ELEMENTS

_T = TensorProto

#: Wider types by their turn: the first that the engine takes serves. Integers wrap around the same when cut back.
_WIDER: tuple[Mapping[int, int], ...] = (
    {_T.BFLOAT16: _T.FLOAT},
    {_T.FLOAT16: _T.FLOAT},
    {_T.BFLOAT16: _T.FLOAT, _T.FLOAT16: _T.FLOAT},
    {_T.INT8: _T.INT32, _T.INT16: _T.INT32, _T.UINT8: _T.INT32, _T.UINT16: _T.INT32},
    dict.fromkeys((_T.INT8, _T.INT16, _T.UINT8, _T.UINT16, _T.INT32, _T.UINT32), _T.INT64),
    {_T.BOOL: _T.UINT8},
    {_T.BOOL: _T.INT32},
    {_T.FLOAT: _T.DOUBLE},
)

#: Where a type means more than a set of values: what saturates, what reads bits, what takes its result's type from it.
_BOUND = frozenset(
    {
        *("QuantizeLinear", "DynamicQuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul"),
        *("ConvInteger", "MatMulInteger", "CastLike", "BitCast", "BitwiseNot", "BitShift", "Cast"),
        *("Bernoulli", "RandomNormalLike", "RandomUniformLike", "EyeLike", "Hardmax"),
        *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "Optional"),
    }
)


def widen_types(site: Site) -> Iterator[ModelProto]:
    """Cast inputs of the types that the kernel lacks to a wider type, and results back."""
    if site.op_type in _BOUND or next(subgraphs(site.node), None) is not None:
        return
    for wider in _WIDER:
        if _T.FLOAT in wider and site.domain:
            continue  # what their kernels make of float64 is other numbers
        if _T.FLOAT in wider and site.is_(*LAYERS):
            continue  # ONNX Runtime refuses those of float64 when they run
        if _T.FLOAT in wider and site.is_("TopK"):
            continue  # it moves numbers, which are as exact in float32
        if _T.FLOAT in wider and site.is_("Div"):
            continue  # engines have its kernel; what OpenVINO gets wrong of it, it does in float64 too
        if site.is_("ReduceProd") and _T.INT64 in wider.values():
            continue  # engines limit a product that int64 does not hold, where it should wrap around
        body = with_types(site, wider)
        if body is not None:
            yield body


def _is_vast(site: Site, name: str) -> bool:
    """Whether a value is declared with so many elements that an engine would need gigabytes for its cast: OpenVINO takes memory while it compiles."""
    shape = site.shape(name)
    return shape is not None and math.prod(size or 1 for size in shape) > MOST_ELEMENTS


def with_types(site: Site, wider: Mapping[int, int]) -> ModelProto | None:
    """The node between casts from narrow types to wider ones and back; None where none of its inputs is narrow."""
    narrow = [name for name in dict.fromkeys(site.node.input) if name and site.elem_type(name) in wider]
    if not narrow or any(_is_vast(site, name) for name in narrow):
        return None
    body = Body(site, site.opsets)
    casts = {name: body.cast(name, wider[site.elem_type(name)]) for name in narrow}
    made = _types_made(site, casts, wider)
    if not all(made.get(name) for name in site.node.output if name):
        return None
    node = NodeProto()
    node.CopyFrom(site.node)
    for i, name in enumerate(node.input):
        node.input[i] = casts.get(name, name)
    results = []
    for name, value in zip(site.node.output, body.add(node), strict=True):
        cut = bool(name) and made[name] != site.elem_type(name)
        results.append(body.cast(value, site.elem_type(name)) if cut else value)
    return body.finish(*results)


def _types_made(site: Site, casts: Mapping[str, str], wider: Mapping[int, int]) -> dict[str, int]:
    """The element types of the node's outputs once its inputs are wider."""
    model = ModelProto()
    model.CopyFrom(site.model)
    for value in model.graph.input:
        if value.name in casts:
            value.type.tensor_type.elem_type = wider[value.type.tensor_type.elem_type]
    for tensor in [t for t in model.graph.initializer if t.name in casts]:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, wider[tensor.data_type], list(tensor.dims)))
        model.graph.initializer.remove(tensor)
    for value in model.graph.output:
        value.ClearField("type")
    outputs = infer(model).graph.output
    return {v.name: v.type.tensor_type.elem_type for v in outputs if v.type.HasField("tensor_type")}
