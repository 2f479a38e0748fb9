# SPDX-License-Identifier: Apache-2.0
"""Optimizers of quantized models.

One ends the process where a branch or a body reads what is moved behind a DequantizeLinear (1.24 to 1.32): it puts another pair of QuantizeLinear and
DequantizeLinear there, and takes the branch for a node that has the value as an input.

Two put scales into the product of quantized integers (1.24 to 1.32): of a scale of several axes they lose one, or multiply the bias by it, and so
they do of weights with more axes than a matrix.

One makes a QLinearWhere of a Where between Q/DQ nodes, which ends the process where a zero point is known only at run time (1.24 to 1.32).

One leaves out a Relu before a QuantizeLinear to int4, whatever the zero point is (1.24 to 1.32).

Two approximate (1.24 to 1.32): one quantizes float weights between a DequantizeLinear and a QuantizeLinear, with errors of 0.5 %; another leaves out
a QuantizeLinear behind a DequantizeLinear, also over what moves elements, and with it a rounding to another scale.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.ort.optimizers.passed import passed_on, source
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.tensors import is_whole

#: Since this opset QuantizeLinear names its type.
_OUTPUT_DTYPE = 21
#: The axes of a matrix.
_MATRIX = 2
#: Make one node of a product of quantized integers and its scales.
_SCALING = ("DynamicQuantizeMatMulFusion", "MatMulIntegerToFloatFusion")
#: What a DequantizeLinear is moved over.
_MOVING = ("Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
#: What may be left out, or moved, between a DequantizeLinear and what is fused with it.
_REACHING = frozenset(
    """Add Cast Concat Div Dropout Expand Flatten Identity Max Min Mul Pad Relu Reshape Slice Squeeze Sub Sum Tile Transpose Unsqueeze""".split()
)
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def _chooses_of_run(contents: Contents) -> bool:
    """Whether a Where chooses from what is dequantized with a zero point that a run may give, over nodes that are left out or moved first."""
    if not contents.has({"Where"}):
        return False
    given = {value.name for value in contents.model.graph.input}
    fixed = contents.constants.keys() - given
    reached = {
        node.output[0]
        for node in contents.of("DequantizeLinear")
        if len(node.input) > 2 and node.input[2] and node.input[2] not in fixed
    }
    for node in contents.nodes if reached else ():
        if node.op_type in _REACHING and not reached.isdisjoint(node.input):
            reached.update(node.output)
    return any(not reached.isdisjoint(node.input[1:]) for node in contents.of("Where"))


def of_quantized(contents: Contents) -> list[str]:
    if not contents.has({"QuantizeLinear"}):
        return []
    dequantized = {node.output[0]: node for node in contents.of("DequantizeLinear") if len(node.input) > 1}
    found = []
    moved = passed_on(contents, _MOVING)

    def dequantizing(name: str) -> NodeProto | None:
        return dequantized.get(source(name, moved, dequantized))

    scales = {tensor.name: tensor for tensor in contents.tensors if is_whole(tensor)}

    def is_rounded_again(node: NodeProto) -> bool:
        before = dequantizing(node.input[0]) if len(node.input) > 1 else None
        if before is None or node.input[0] in dequantized:
            return before is not None
        one, other = before.input[1], node.input[1]
        if one == other:
            return False
        if one not in scales or other not in scales:
            return True
        return not np.array_equal(numpy_helper.to_array(scales[one]), numpy_helper.to_array(scales[other]))

    if any(map(is_rounded_again, contents.of("QuantizeLinear"))):
        found.append("DoubleQDQPairsRemover")
    weighted = [n for n in contents.of(*_WEIGHTED) if len(n.input) > 1 and n.input[1] not in dequantized]
    if any(dequantizing(node.input[0]) is not None for node in weighted):
        found.append("WeightBiasQuantization")
    if _chooses_of_run(contents):
        found.append("QDQSelectorActionTransformer")
    if contents.has({"Relu"}) and TensorProto.INT4 in contents.tensor_types:
        found.append("ReluQuantRewrite")
    return found


def of_signed_products(contents: Contents) -> list[str]:
    """Since 1.27 one puts a Reshape before a product of several axes and an addition, where int8 would be quantized again to uint8."""
    meant = all(map(contents.has, ({"Add"}, {"DequantizeLinear"}, {"MatMul"})))
    if not meant or Facts(contents.model, contents).opset < _OUTPUT_DTYPE:
        return []
    dequantized = {node.output[0] for node in contents.of("DequantizeLinear") if _may_be_signed(node, contents)}
    passed = passed_on(contents)
    added = {source(name, passed) for node in contents.of("Add") for name in node.input}
    products = [n for n in contents.of("MatMul") if source(n.input[0], passed) in dequantized and n.output[0] in added]
    if not products or not applies({"onnxruntime": ">=1.27"}):
        return []
    from onnx_multi_backend.adapt.walked import walked_of  # asked of few models, and imported for these alone

    rank = walked_of(contents).rank
    return ["MatMulAddFusion"] if any(rank(node.input[0]) != _MATRIX for node in products) else []


def _may_be_signed(node: NodeProto, contents: Contents) -> bool:
    """Whether a DequantizeLinear has a zero point that is not known to be of another type than int8."""
    zero = node.input[2] if len(node.input) > 2 else ""
    held = contents.constants.get(zero)
    return bool(zero) and (held is None or held.data_type == TensorProto.INT8)


def of_captured(contents: Contents) -> list[str]:
    if not contents.has({"DequantizeLinear"}) or not contents.has(_MOVING) or not contents.holding:
        return []
    from onnx_multi_backend.adapt.single_node import captures

    moved = passed_on(contents, _MOVING)
    dequantized = {node.output[0] for node in contents.of("DequantizeLinear")}
    read = (name for node in contents.holding for name in captures(node) if name in moved)
    found = any(source(moved[name], moved, dequantized) in dequantized for name in read)
    return ["QDQPropagationTransformer"] if found else []


def of_scaled_products(contents: Contents) -> list[str]:
    """They put scales into a product of quantized integers, whatever their shape is."""
    if not contents.has({"DynamicQuantizeLinear"}) or not contents.has({"MatMulInteger"}):
        return []
    facts = Facts(contents.model, contents)
    weights = (contents.constants.get(node.input[1]) for node in contents.of("MatMulInteger") if len(node.input) > 1)
    if any(tensor is not None and len(tensor.dims) > 2 for tensor in weights):
        return list(_SCALING)
    scales = {node.output[1] for node in contents.of("DynamicQuantizeLinear") if len(node.output) > 1}
    behind = [node for node in contents.of("Mul") if not scales.isdisjoint(node.input)]
    behind += [n for n in contents.of("Mul") if not {node.output[0] for node in behind}.isdisjoint(n.input)]
    read = facts.constants_of({name for node in behind for name in node.input})
    return list(_SCALING) if any(len(tensor.dims) > 1 for tensor in read.values()) else []
