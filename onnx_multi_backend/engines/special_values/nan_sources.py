# SPDX-License-Identifier: Apache-2.0
"""Which values of a graph may hold NaN that a node before made of numbers or infinities, as far as the nodes themselves tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import SMALL_BYTES
from onnx_multi_backend.adapt.intervals.values import NO_NUMBERS
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.tensors import is_whole

#: Operators that have no number for some numbers, or for an infinity.
ALWAYS = frozenset({"Acos", "Acosh", "Asin", "Atanh", "Log", "ReduceLogSum", "Sqrt"}) | frozenset(
    {"Cos", "HardSwish", "Mish", "Sin", "Softsign", "Swish", "Tan"}
)
#: The same, unless a constant operand rules it out.
MAYBE = frozenset({"Div", "Pow"})

#: Operators that make NaN of an infinity beside some numbers or another infinity: inf - inf, 0 * inf, inf / inf.
OF_INFINITY = ALWAYS | frozenset(
    """Add Attention AveragePool BatchNormalization Conv ConvTranspose CumSum DFT Div Einsum GRU Gemm GlobalAveragePool GridSample
    GroupNormalization InstanceNormalization LRN LSTM LayerNormalization LogSoftmax LpNormalization MatMul Mean MeanVarianceNormalization
    Mod Mul NegativeLogLikelihoodLoss RMSNormalization RNN ReduceLogSumExp ReduceMean ReduceSum Resize STFT Softmax
    SoftmaxCrossEntropyLoss Sub Sum Upsample""".split()
)

#: Operators that pass the numbers of their first input on, or what it makes of each: its negative, inverse, rounding and the like.
_MOVING = frozenset({"Abs", "Flatten", "Identity", "Neg", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}) | (
    frozenset({"DepthToSpace", "Dropout", "Expand", "Gather", "LeakyRelu", "Pad", "SpaceToDepth", "Split", "Tile"})
    | {"Compress", "GatherElements", "GatherND", "ReverseSequence", "Trilu"}
    | {"Cast", "Ceil", "Erf", "Floor", "Reciprocal", "Round", "Sigmoid", "Tanh"}
)
#: Operators that pass it on from these inputs.
_FROM: Mapping[str, slice] = {
    **dict.fromkeys(_MOVING, slice(1)),
    **dict.fromkeys(("Clip", "Exp", "HardSigmoid", "Relu"), slice(1)),  # guarded themselves
    **dict.fromkeys(("Concat", "Max", "Min"), slice(None)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), slice(None, None, 2)),
    "Where": slice(1, 3),
}
#: Operators of two operands that pass NaN on, and make none where one of them is a constant of finite numbers but zero.
_ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})

_FOLLOWED = ALWAYS | MAYBE | _FROM.keys() | _ARITHMETIC | {"Constant", "If"}


@dataclass(frozen=True)
class Scope:
    """A graph, and what its nodes may read.

    Attributes
    ----------
    graph : GraphProto
    makers : mapping of str to NodeProto
        The node that makes a value, here or in a graph around this one, where it is of an operator that is followed.
    tensors : mapping of str to TensorProto
        The initializers.
    """

    graph: GraphProto
    makers: Mapping[str, NodeProto]
    tensors: Mapping[str, TensorProto]
    _known: dict[bool, dict[str, bool]] = field(default_factory=dict, init=False)

    def may_be_nan(self, name: str, *, of_quotients: bool) -> bool:
        """Whether a value may be such NaN; `of_quotients`: that of 0 / 0 too, of two operands that are computed."""
        known = self._known.setdefault(of_quotients, {})
        seen: set[str] = set()
        todo = [name]
        while todo:
            value = todo.pop()
            if value in seen or known.get(value) is False:
                continue
            read = None if known.get(value) else self._read(value, of_quotients=of_quotients)
            if read is None:
                known[name] = True
                return True
            seen.add(value)
            todo += read
        known |= dict.fromkeys(seen, False)
        return False

    def _read(self, name: str, *, of_quotients: bool) -> Sequence[str] | None:
        """The values from which NaN would come into a value; None where it is made there."""
        node = self.makers.get(name)
        if node is None or canonical(node.domain):
            return ()
        kind = node.op_type
        if kind in ALWAYS or (kind == "Pow" and self.makes(node)):
            return None
        if kind == "If":
            return self._from_branches(node, list(node.output).index(name), of_quotients=of_quotients)
        if kind not in _ARITHMETIC:
            return node.input[_FROM[kind]] if kind in _FROM else ()
        if len(node.input) != 2:  # the checker reports it
            return ()
        first, second = node.input
        if self._is_finite(second):
            return (first,)
        if kind == "Div":
            return None if of_quotients else ()
        return (second,) if self._is_finite(first) else ()

    def _from_branches(self, node: NodeProto, place: int, *, of_quotients: bool) -> Sequence[str] | None:
        """The values from outside from which NaN would come through the branches into a result; None where it is made in one."""
        outside: list[str] = []
        for body in subgraphs(node):
            inner, own = _inside(body, self), {name for made in body.node for name in made.output}
            own.update(tensor.name for tensor in body.initializer)
            todo, seen = [value.name for value in body.output[place : place + 1]], set[str]()
            while todo:
                if (name := todo.pop()) in seen:
                    continue
                seen.add(name)
                if name not in own:
                    outside.append(name)
                    continue
                if (read := inner._read(name, of_quotients=of_quotients)) is None:
                    return None
                todo += read
        return outside

    def makes(self, node: NodeProto) -> bool:
        """Whether a node of `ALWAYS` or `MAYBE` may make NaN: none of whole powers, and none by finite numbers but zero."""
        if node.op_type in ALWAYS or len(node.input) < 2:
            return True
        known = self._is_whole if node.op_type == "Pow" else self._is_finite
        return not known(node.input[1])

    def _is_whole(self, name: str) -> bool:
        numbers = self._numbers(name)
        return numbers is not None and bool((numbers == np.rint(numbers)).all())

    def _is_finite(self, name: str) -> bool:
        """Whether these are numbers of which none is zero or infinite."""
        numbers = self._numbers(name)
        return numbers is not None and bool((np.isfinite(numbers) & (numbers != 0)).all())

    def _numbers(self, name: str) -> np.ndarray[Any, Any] | None:
        """The elements of a small constant."""
        node = self.makers.get(name)
        tensor = self.tensors.get(name)
        if node is not None and node.op_type == "Constant" and node.attribute:
            given = node.attribute[0]
            if given.name in ("value_float", "value_floats"):
                return np.array([*given.floats, given.f] if given.name == "value_float" else given.floats, np.float32)
            tensor = given.t if given.HasField("t") else None
        if tensor is None or tensor.ByteSize() >= SMALL_BYTES or not is_whole(tensor) or tensor.data_type in NO_NUMBERS:
            return None
        return numpy_helper.to_array(tensor).astype(np.float32)


def may_make(contents: Contents) -> bool:
    """Whether a model may make such NaN: one look at its operators, and at the constants that some of them read."""
    if contents.has(ALWAYS) or contents.model.functions or contents.holding:
        return contents.has(ALWAYS | MAYBE)
    doubtful = contents.of(*MAYBE)
    read = {node.input[1] for node in doubtful if len(node.input) > 1}
    makers = {node.output[0]: node for node in contents.of("Constant") if node.output[0] in read} if read else {}
    graph = contents.model.graph
    tensors = {t.name: t for t in graph.initializer if t.name in read} if len(makers) < len(read) else {}
    scope = Scope(graph, makers, tensors)
    return any(scope.makes(node) for node in doubtful)


def plain(contents: Contents) -> Scope:
    """The graph of a model that has no others: less of it is looked at."""
    makers = {name: node for node in contents.of(*_FOLLOWED) for name in node.output}
    return Scope(contents.model.graph, makers, {tensor.name: tensor for tensor in contents.model.graph.initializer})


def scopes(graph: GraphProto, outer: Scope | None = None) -> list[Scope]:
    """A graph and its subgraphs; the inner ones first, since a node is copied with them."""
    scope = _inside(graph, outer)
    inner = [found for node in graph.node for body in subgraphs(node) for found in scopes(body, scope)]
    return [*inner, scope]


def _inside(graph: GraphProto, outer: Scope | None) -> Scope:
    makers = {name: node for node in graph.node if node.op_type in _FOLLOWED for name in node.output}
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    if outer is not None:
        hidden = {value.name for value in graph.input} | tensors.keys()
        hidden.update(name for node in graph.node for name in node.output)
        makers = {name: node for name, node in outer.makers.items() if name not in hidden} | makers
        tensors = {n: t for n, t in outer.tensors.items() if n not in makers and n not in hidden} | tensors
    return Scope(graph, makers, tensors)
