# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO's low-precision transformations make of models with Q/DQ nodes.

They move scales and zero points behind the operators that follow a DequantizeLinear, to compute these in 8 bits. What comes out is wrong
by 10 % and more, or ends the process, where (OpenVINO 2025.4 and 2026.4, all processors)

- tensors are concatenated that are of signed integers, or whose zero points differ, and a convolution follows;
- AveragePool counts zeros around its input, or rounds its means to the scale;
- Clip, or Min and Max, have bounds that are not multiples of the scale: they are rounded to one;
- Conv has unsigned weights without a zero point, or with one that is zero: no implementation is found, and the model is refused;
- ConvTranspose has weights with a zero point, or scaled behind their DequantizeLinear;
- MatMul has an operand whose channels were scaled, of a shape known only at run time, or quantized each: this is refused;
- Gemm and MatMul have quantized constants as first operand, and a number is multiplied and another added behind them;
- the same have a second operand that only a run tells, with a scale for each column, and the first one has one row;
- GlobalAveragePool takes what was reshaped or transposed (channels that were shuffled): a larger batch than before gets zeros.

No scale is moved behind the larger of a value and itself, which is that value. The operator is then computed in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import larger, maker_before, passed_from
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import is_whole

#: What computes in 8 bits by itself: behind it there are scales, but no zero points and no grid that a bound is rounded to.
_COMPUTES = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
#: What no scale is moved over, of the nodes that values come through.
_ENDS = _COMPUTES | {"DynamicQuantizeLinear", "Shape", "Size"}

#: What may scale each channel by another number.
_SCALES = frozenset({"BatchNormalization", "Div", "Mul"})

#: What moves elements.
_MOVES = frozenset({"Reshape", "Transpose"})

#: What weights may come through.
_PASSING = _MOVES | {"Flatten", "Identity"}

_REASON = "OpenVINO would move scales and zero points behind the operator, and compute it wrongly"


def kept_in_place(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these operators are kept apart from scales; None where there are none."""
    if not contents.has(_FORMS) or not _is_quantized(contents):
        return None
    walked = walked_of(contents)
    if not walked.several and not _may_find(walked):
        return None
    flat = inlined(contents.model)
    floats = Facts(flat).floats
    copy = ModelProto()
    copy.CopyFrom(flat)
    added: dict[str, str] = {}
    _keep(copy.graph, {}, {}, floats, added)
    if not added:
        return None
    return Rewritten(
        copy,
        tuple(Adaptation("low_precision", where, "kept in floating point", _REASON) for where in added.values()),
        frozenset(added),
    )


def _is_quantized(contents: Contents) -> bool:
    """Whether something else than weights is quantized, in ONNX's domain or ONNX Runtime's."""
    if not contents.has({"DequantizeLinear"}) or contents.has({"QuantizeLinear"}):
        return contents.has({"QuantizeLinear"})
    weights = {tensor.name for tensor in contents.tensors}
    weights.update(node.output[0] for node in contents.of("Constant"))
    return any(node.input[0] not in weights for node in contents.of("DequantizeLinear"))


def _may_find(walked: Walked) -> bool:
    """Whether there is such an operator, whatever it computes with: a model is not copied for nothing."""
    given = {value.name for graph in walked.graphs for value in graph.input}
    stored = {
        tensor.name: tensor for graph in walked.graphs for tensor in graph.initializer if tensor.name not in given
    }
    found = [
        node.output[0]
        for nodes in walked.views
        for node in nodes
        if node.operator in _FORMS and _FORMS[node.operator](node.proto, walked.makers, stored) is not None
    ]
    return bool(found) and not Facts(walked.flat).floats.isdisjoint(found)


def _keep(
    graph: GraphProto,
    makers: Mapping[str, NodeProto],
    constants: Mapping[str, TensorProto],
    floats: set[str],
    added: dict[str, str],
) -> None:
    """Do so in one graph and its subgraphs; `added` gets the names of the new nodes and where they are."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    makers = {name: node for name, node in makers.items() if name not in own}
    makers |= {name: node for node in graph.node for name in node.output if name}
    constants = {name: tensor for name, tensor in constants.items() if name not in own}
    constants |= {
        tensor.name: tensor for tensor in graph.initializer if tensor.name not in {v.name for v in graph.input}
    }
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            _keep(inner, makers, constants, floats, added)
        form = None if canonical(node.domain) else _FORMS.get(node.op_type)
        place = form(node, makers, constants) if form is not None and node.output[0] in floats else None
        where = f"{node.op_type} {node.name or node.output[0]!r}"
        if place is None:
            nodes.append(node)
        elif place < 0:
            made = node.output[0]
            node.output[0] = apart = f"{made}{CAST}apart"
            nodes += [node, larger(apart, made, name=apart)]
            added[apart] = where
        else:
            read = node.input[place]
            node.input[place] = apart = f"{node.output[0]}{CAST}apart"
            nodes += [larger(read, apart, name=apart), node]
            added[apart] = where
    put_back(graph, nodes)


def _result(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    return -1


def _of_dequantized(
    node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]
) -> int | None:
    return 0 if _is_scaled(node, makers) else None


def _bounded(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    """Min and Max with a constant: both together are taken for Clip."""
    given = [i for i, name in enumerate(node.input) if name not in constants]
    alone = len(node.input) == 2 and len(given) == 1
    return given[0] if alone and _is_scaled(node, makers, given[0]) else None


def _of_scaled(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    bounded = len(node.input) > 1 or any(a.name in ("min", "max") for a in node.attribute)
    return 0 if bounded and _is_scaled(node, makers) else None


def _weights(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    maker = _dequantizing(node.input[1], makers)
    if maker is None:
        return 1 if _is_scaled(node, makers, 1) else None
    if len(maker.input) < 3 or not maker.input[2]:
        return None
    zero = constants.get(maker.input[2])
    known = zero is not None and is_whole(zero)
    return None if known and not np.any(numpy_helper.to_array(zero)) else 1  # type: ignore[arg-type]


def _unsigned_weights(
    node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]
) -> int | None:
    """Unsigned weights without a zero point, or with one that is zero."""
    maker = _dequantizing(node.input[1], makers)
    if maker is None or not _is_scaled(node, makers):
        return None
    if not _is_unsigned(maker.input[0], makers, constants):
        return None
    zero = constants.get(maker.input[2]) if len(maker.input) > 2 and maker.input[2] else None
    shifted = zero is not None and is_whole(zero) and np.all(numpy_helper.to_array(zero))
    return None if shifted else 1


def _dequantizing(name: str, makers: Mapping[str, NodeProto]) -> NodeProto | None:
    """The DequantizeLinear that weights come from, whose axes may be moved."""
    maker = maker_before(name, makers, _PASSING)
    return maker if maker is not None and maker.op_type == "DequantizeLinear" else None


def _is_unsigned(name: str, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> bool:
    """Whether what is dequantized are constants of uint8, or such that the model quantizes to it."""
    if (maker := makers.get(name)) is not None and maker.op_type == "QuantizeLinear" and maker.input[0] in constants:
        zero = constants.get(maker.input[2]) if len(maker.input) > 2 and maker.input[2] else None
        return zero is None or zero.data_type == TensorProto.UINT8
    return name in constants and constants[name].data_type == TensorProto.UINT8


def _of_constants_first(
    node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]
) -> int | None:
    """A product whose first operand are dequantized constants."""
    first = _dequantizing(node.input[0], makers)
    return 0 if first is not None and _is_constant(first.input[0], makers, constants) else None


def _is_constant(name: str, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> bool:
    stored = makers.get(name)
    return name in constants or (stored is not None and stored.op_type == "Constant")


def _is_of_constants(name: str, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> bool:
    """Whether what is dequantized are constants, or such that the model quantizes itself."""
    maker = makers.get(name)
    if maker is not None and maker.op_type == "QuantizeLinear":
        name = passed_from(maker.input[0], makers, _PASSING)
    return _is_constant(name, makers, constants)


def _of_run_time_columns(
    node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]
) -> int | None:
    """A product whose second operand only a run tells, dequantized with several scales."""
    second = _dequantizing(node.input[1], makers)
    if second is None or not _is_scaled(node, makers) or _is_of_constants(second.input[0], makers, constants):
        return None
    return 1 if _is_several(second.input[1], constants) else None


def _is_several(name: str, constants: Mapping[str, TensorProto]) -> bool:
    """Whether a tensor may have several elements."""
    tensor = constants.get(name)
    return tensor is None or any(size > 1 for size in tensor.dims)


def _gemm(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    first = _of_constants_first(node, makers, constants)
    return _of_run_time_columns(node, makers, constants) if first is None else first


def _matmul(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    place = _gemm(node, makers, constants)
    return _of_channels(node, makers, constants) if place is None else place


def _of_channels(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    before = _makers_before(node, makers)
    scaled = [maker for maker in before if maker.op_type == "DequantizeLinear"]
    each = any(
        len(scale.dims) and scale.dims[0] > 1 for m in scaled if (scale := constants.get(m.input[1])) is not None
    )
    return 0 if scaled and (each or any(maker.op_type in _SCALES for maker in before)) else None


def _of_moved(node: NodeProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> int | None:
    """What is reshaped or transposed on its way from a DequantizeLinear."""
    before = {maker.op_type for maker in _makers_before(node, makers)}
    return 0 if "DequantizeLinear" in before and not before.isdisjoint(_MOVES) else None


_Form = Callable[[NodeProto, Mapping[str, NodeProto], Mapping[str, TensorProto]], int | None]

#: Which input is kept apart, or -1 for the first output; None where the node is computed rightly.
_FORMS: Mapping[str, _Form] = {
    "AveragePool": _of_dequantized,
    "Clip": _of_scaled,
    "Concat": _result,
    "Conv": _unsigned_weights,
    "ConvTranspose": _weights,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "GlobalAveragePool": _of_moved,
    "Max": _bounded,
    "Min": _bounded,
}


def _is_scaled(node: NodeProto, makers: Mapping[str, NodeProto], place: int = 0) -> bool:
    """Whether scales of a DequantizeLinear may be moved up to a node."""
    return any(maker.op_type == "DequantizeLinear" for maker in _makers_before(node, makers, place))


def _makers_before(node: NodeProto, makers: Mapping[str, NodeProto], place: int = 0) -> list[NodeProto]:
    """The nodes that an input of a node comes through, up to those that scales are not moved over."""
    found: list[NodeProto] = []
    seen: set[str] = set()
    todo: list[str] = [node.input[place]]
    while todo:
        maker = makers.get(name := todo.pop())
        if maker is None or name in seen or maker.op_type in _ENDS:
            continue
        seen.add(name)
        found.append(maker)
        if maker.op_type != "DequantizeLinear":
            todo += [name for name in maker.input if name]
    return found
