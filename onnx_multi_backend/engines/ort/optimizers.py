# SPDX-License-Identifier: Apache-2.0
"""Optimizers of ONNX Runtime that must not see a model (found by measuring).

Before 1.32 a Pad with zeros before MaxPool becomes the padding of MaxPool, where zeros do not count: the result is wrong where numbers are negative.
So it is before AveragePool with ceil_mode.

A fusion ends the process of 1.24 to 1.32. Of a float16 MatMul with a constant, and a Transpose that moves the first axis to one of the last two
places, the fusion makes one node; building the session then ends the process at the level ORT_ENABLE_ALL, which is the default. PyTorch writes this
where a batch is not the first axis.

Another one ends the process before 1.26, with a Where that reads a DequantizeLinear without a constant zero point.

Before 1.30 the process ends too where an input of float16 has a default: the fusion that makes float32 of it frees it. So it does with a
constant of float16 that is cast to float32, where nothing is computed ahead.

Before 1.27 an Optional of what is known ahead is refused: computing it beforehand is not implemented.

Up to opset 20 a Transpose that moves nothing before or behind a Gemm is taken for one that turns a matrix (1.24 to 1.32).

One ends the process where a branch or a body reads what is moved behind a DequantizeLinear (1.24 to 1.32): it puts another pair of QuantizeLinear and
DequantizeLinear there, and takes the branch for a node that has the value as an input.

Two multiply the weights of a Conv by the factors of a BatchNormalization or Mul behind it, in their type (1.24 to 1.32): inf of float16 where both
are large, few digits where both are small.

Two make a normalization of what is nearly one (1.24 to 1.32): of means that lose their axis, where rows and columns are as many, of another power
than the square, of a number with more axes than what is normalized, and in 1.24 of an epsilon for each row.

One takes a matrix that is turned before its product with a vector for one that is not (1.24 to 1.32).

Two put scales into the product of quantized integers (1.24 to 1.32): of a scale of several axes they lose one, or multiply the bias by it, and so
they do of weights with more axes than a matrix.

One leaves out a Relu before a QuantizeLinear to int4, whatever the zero point is (1.24 to 1.32).

Two approximate (1.24 to 1.32): one quantizes float weights between a DequantizeLinear and a QuantizeLinear, with errors of 0.5 %; another leaves out
a QuantizeLinear behind a DequantizeLinear, also over what moves elements, and with it a rounding to another scale.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.constant_chains import LIMITS, chain_of
from onnx_multi_backend.engines.ort.chosen_branches import FOLDING, of_branches
from onnx_multi_backend.engines.ort.empty_values import of_empty_results
from onnx_multi_backend.engines.written_norms import OPERATORS, ROOTS, WrittenNorm, written_norms
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.tensors import is_whole

#: Makes one node of two that compute the same of the same values.
MERGING = "CommonSubexpressionElimination"
#: Makes the bias of a convolution of what is added behind it.
JOINING_BIASES = "ConvAddFusion"
#: Make one convolution of one and the factors behind it.
_JOINING_FACTORS = {"BatchNormalization": "ConvBNFusion", "Mul": "ConvMulFusion"}
#: Makes one node of a product and the transposition before it.
_TURNING = "MatmulTransposeFusion"
#: Make one node of a product of quantized integers and its scales.
_SCALING = ("DynamicQuantizeMatMulFusion", "MatMulIntegerToFloatFusion")
#: Make one operator of a normalization that is written out.
_NORMALIZING = ("LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion")
#: Makes float32 of constants of float16.
_WIDENING = "FuseFp16InitializerToFp32NodeTransformer"
#: What a DequantizeLinear is moved over.
_MOVING = ("Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def harmful_optimizers(contents: Contents) -> list[str]:
    """The optimizers of ONNX Runtime that must not see a model."""
    found = [
        *_of_pads(contents),
        *_of_halves(contents),
        *_of_choices(contents),
        *_of_optionals(contents),
        *_of_defaults(contents),
        *_of_quantized(contents),
        *_of_captured(contents),
        *_of_idle_transposes(contents),
        *_of_factors(contents),
        *_of_norms(contents),
        *_of_turned_matrices(contents),
        *_of_scaled_products(contents),
        *of_branches(contents),
        *of_empty_results(contents),
    ]
    return found if FOLDING not in found else [*found, *_of_cast_constants(contents)]


def _of_pads(contents: Contents) -> list[str]:
    if not contents.has({"Pad"}) or not contents.has({"MaxPool", "AveragePool"}):
        return []
    padded: set[str] = set()
    for node in contents.nodes:
        passes = node.op_type in ("Cast", "Identity") and node.input[0] in padded
        if node.op_type == "Pad" or passes:
            padded.update(node.output[:1])
    # What a local function passes on is not followed.
    pools = filter(_pools, contents.of("MaxPool", "AveragePool"))
    pooled = padded and any(contents.model.functions or node.input[0] in padded for node in pools)
    return ["Pad_Fusion"] if pooled and applies({"onnxruntime": "<1.32"}) else []


def _pools(node: NodeProto) -> bool:
    ceils = any(a.name == "ceil_mode" and a.i for a in node.attribute)
    return node.op_type == "MaxPool" or (node.op_type == "AveragePool" and ceils)


def _of_choices(contents: Contents) -> list[str]:
    both = contents.has({"Where"}) and contents.has({"DequantizeLinear"})
    return ["WhereDummyDq"] if both and applies({"onnxruntime": "<1.26"}) else []


def _of_optionals(contents: Contents) -> list[str]:
    if not contents.has({"Optional"}) or not applies({"onnxruntime": "<1.27"}):
        return []
    facts = Facts(contents.model, contents)
    known = facts.known | facts.computed_of_constants
    return [FOLDING] if any(not known.isdisjoint(node.input) for node in contents.of("Optional")) else []


def _of_defaults(contents: Contents) -> list[str]:
    graph = contents.model.graph
    halves = {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT16}
    given = not halves.isdisjoint(value.name for value in graph.input)
    return [_WIDENING] if given and applies({"onnxruntime": "<1.30"}) else []


def _of_cast_constants(contents: Contents) -> list[str]:
    """Those that end the process over a constant that is cast, where nothing is computed ahead."""
    halves = any(tensor.data_type == TensorProto.FLOAT16 for tensor in contents.tensors)
    return [_WIDENING] if halves and contents.has({"Cast", "CastLike"}) and applies({"onnxruntime": "<1.30"}) else []


def _of_quantized(contents: Contents) -> list[str]:
    if not contents.has({"QuantizeLinear"}):
        return []
    dequantized = {node.output[0]: node for node in contents.of("DequantizeLinear") if len(node.input) > 1}
    found = []
    moved = _moved(contents)

    def dequantizing(name: str) -> NodeProto | None:
        return dequantized.get(_source(name, moved, dequantized))

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
    if contents.has({"Relu"}) and TensorProto.INT4 in contents.tensor_types:
        found.append("ReluQuantRewrite")
    return found


def _of_captured(contents: Contents) -> list[str]:
    if not contents.has({"DequantizeLinear"}) or not contents.has(_MOVING) or not contents.holding:
        return []
    from onnx_multi_backend.adapt.single_node import captures

    moved = _moved(contents)
    dequantized = {node.output[0] for node in contents.of("DequantizeLinear")}
    read = (name for node in contents.holding for name in captures(node) if name in moved)
    found = any(_source(moved[name], moved, dequantized) in dequantized for name in read)
    return ["QDQPropagationTransformer"] if found else []


def _moved(contents: Contents) -> dict[str, str]:
    """What is only moved, by its name: what it is moved from."""
    return {node.output[0]: node.input[0] for node in contents.of(*_MOVING) if node.input}


def _source(name: str, moved: Mapping[str, str], until: Container[str]) -> str:
    """What a value is moved from, back to the first of those at which the search ends."""
    seen = set()  # names are those of several graphs
    while name not in until and name in moved and name not in seen:
        seen.add(name)
        name = moved[name]
    return name


def _of_idle_transposes(contents: Contents) -> list[str]:
    if not contents.has({"Gemm"}):
        return []
    orders = (list(a.ints) for node in contents.of("Transpose") for a in node.attribute if a.name == "perm")
    return ["GemmTransposeFusion"] if [0, 1] in orders else []


def _of_factors(contents: Contents) -> list[str]:
    """They multiply the weights of a convolution by the factors behind it, in their type."""
    if not contents.has({"Conv"}) or not contents.has(_JOINING_FACTORS):
        return []
    convolutions = {node.output[0]: node for node in contents.of("Conv") if node.output and len(node.input) > 1}
    nodes = [node for node in contents.of(*_JOINING_FACTORS) if not convolutions.keys().isdisjoint(node.input)]
    met = (convolutions[name] for node in nodes for name in node.input if name in convolutions)
    constants = Facts(contents.model, contents).constants_of({name for node in (*nodes, *met) for name in node.input})
    return sorted({_JOINING_FACTORS[node.op_type] for node in nodes if _is_not_held(node, convolutions, constants)})


def _of_norms(contents: Contents) -> list[str]:
    """They make a normalization of one that is written out, whatever axes the means keep, the power is and the shape of epsilon."""
    if not all(contents.has({operator}) for operator in OPERATORS) or not contents.has(ROOTS):
        return []
    norms = list(written_norms(contents.nodes))
    if not norms:
        return []
    facts = Facts(contents.model, contents)

    def is_misread(norm: WrittenNorm) -> bool:
        base, exponent = norm.square.input[:2]
        if norm.square.op_type == "Pow":
            power = facts.constants.get(exponent)
            other = power is not None and not np.array_equal(numpy_helper.to_array(power).ravel(), [2])
            other = other or base in facts.constants
        else:
            other = base != exponent
        read = (*(norm.sum.input if norm.sum is not None else ()), *norm.square.input[1:])
        shaped = any(list(facts.constants[name].dims) not in ([], [1]) for name in read if name in facts.constants)
        # Before 1.32 the default takes the place of an epsilon that stands first.
        first = norm.sum is not None and norm.sum.input[0] in facts.constants and applies({"onnxruntime": "<1.32"})
        return bool(norm.reductions) or other or shaped or first

    return list(_NORMALIZING) if any(map(is_misread, norms)) else []


def _of_turned_matrices(contents: Contents) -> list[str]:
    """One leaves out that a matrix is turned before its product with a vector."""
    if not contents.has({"Transpose"}) or not contents.has({"MatMul"}):
        return []
    turned = {node.output[0] for node in contents.of("Transpose") if _turns(node)}
    turned.update(node.output[0] for node in contents.of("Cast") if not turned.isdisjoint(node.input))
    others = [node.input[1] for node in contents.of("MatMul") if len(node.input) > 1 and node.input[0] in turned]
    if not others:
        return []
    facts = Facts(contents.model, contents)

    def may_be_a_vector(name: str) -> bool:
        if (held := contents.constants.get(name)) is not None:
            return len(held.dims) == 1
        if (shape := facts.shape(name)) is not None:
            return len(shape) == 1
        from onnx_multi_backend.adapt.walked import walked_of

        return walked_of(contents).rank(name) in (None, 1)

    return [_TURNING] if any(map(may_be_a_vector, others)) else []


def _turns(node: NodeProto) -> bool:
    """Whether a Transpose exchanges the last two axes."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
    return perm is None or [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2] == perm


def _of_scaled_products(contents: Contents) -> list[str]:
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


def _is_not_held(node: NodeProto, convolutions: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> bool:
    """Whether the type of weights does not hold what comes of them, and of the factors of a node behind their convolution."""
    data = next((place for place, name in enumerate(node.input) if name in convolutions), None)
    if data is None:
        return False
    before = convolutions[node.input[data]]
    others = [name for place, name in enumerate(node.input) if place != data]
    if not before.input[1] or not constants.keys() >= {name for name in (*before.input[1:], *others) if name}:
        return False
    limits = LIMITS.get(constants[before.input[1]].data_type)
    own, other = chain_of(node, data, constants), chain_of(before, 0, constants)
    return limits is not None and own.is_held(*limits) and not other.before(own).is_held(*limits)


def _of_halves(contents: Contents) -> list[str]:
    half = TensorProto.FLOAT16
    if not any(map(_moves_first_axis, contents.of("Transpose"))):
        return []
    if any(tensor.data_type == half for tensor in contents.tensors) or any(
        attribute.name == "to" and attribute.i == half for node in contents.of("Cast") for attribute in node.attribute
    ):
        return [_TURNING]
    return []


def _moves_first_axis(node: NodeProto) -> bool:
    """Whether the first axis becomes the last or the one before it, and the others keep their order."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return len(perm) > 2 and 0 in perm[-2:] and sorted(perm) == [0, *(axis for axis in perm if axis)]
