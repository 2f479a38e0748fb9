# SPDX-License-Identifier: Apache-2.0
"""Differences of unsigned numbers that are never below 0, because of what the smaller one is made of."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import LIMITS, Value
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.models.graph_walk import canonical

_T = TensorProto
_UNSIGNED = frozenset({_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64})
#: Pairs of tensors that are compared for one difference.
_MOST = 100

#: Operators whose results, of unsigned numbers, are at most each of these inputs; or at least each of them.
_LOWERS: Mapping[str, slice] = {
    **dict.fromkeys(("Identity", "Div", "Mod"), slice(1)),
    **dict.fromkeys(("Min", "BitwiseAnd"), slice(None)),
}
_RAISES: Mapping[str, slice] = {"Identity": slice(1), "Max": slice(None), "BitwiseOr": slice(None)}
#: Comparisons: which of their inputs is the larger one, or equal, where they hold.
_LARGER = {"Greater": 0, "GreaterOrEqual": 0, "Less": 1, "LessOrEqual": 1}


class Differences:
    """What is known of the differences in a graph.

    Parameters
    ----------
    graph : onnx.GraphProto
    values : mapping of str to Value
        Of what the graph's nodes read.
    """

    def __init__(self, graph: GraphProto, values: Mapping[str, Value]) -> None:
        self._values, self._left = values, 0
        self._makers = {name: node for node in graph.node if not canonical(node.domain) for name in node.output[:1]}

    def corrected(self, node: NodeProto, made: Made) -> Made:
        """What a Sub or Where makes, without the numbers below 0 that it cannot make."""
        value = made.values[0]
        if node.op_type == "Sub":
            if not self._is_above_0(node):
                return made
            high = self._value(node.input[0]).high
        else:
            if not self._chosen_above_0(node):
                return made
            high = value.high
        low = None if high is None else 0
        value = value._replace(low=low, high=high, wrapped=False)
        return Made([value], None if made.whole is None else value)

    def _is_above_0(self, node: NodeProto) -> bool:
        return not self._value(node.input[0]).below_0 and self.at_most(node.input[1], node.input[0])

    def at_most(self, less: str, more: str) -> bool:
        """Whether no element of one unsigned tensor is above that of another which it is subtracted from."""
        self._left = _MOST
        return self._at_most(less, more)

    def _at_most(self, less: str, more: str) -> bool:
        self._left -= 1
        if self._same(less, more):
            return True
        if self._left <= 0:
            return False
        small, large = self._makers.get(less), self._makers.get(more)
        if small is not None:
            if any(self._at_most(name, more) for name in self._above(small)):
                return True
            if large is not None and self._cast_alike(small, large):
                return self._at_most(small.input[0], large.input[0])
        return large is not None and any(self._at_most(less, name) for name in _below(large))

    def _value(self, name: str) -> Value:
        return self._values.get(name, Value())

    def _same(self, a: str, b: str) -> bool:
        """Whether two tensors are one, or constants of one number."""
        one, other = self._value(a), self._value(b)
        return a == b or (one.low is not None and one.low == one.high == other.low == other.high)

    def _above(self, node: NodeProto) -> list[str]:
        """Inputs that the result of a node is at most."""
        kind = node.op_type
        if kind == "Mul" and len(node.input) == 2:
            return [name for i in (0, 1) for name in self._multiple_of(node.input[i], node.input[1 - i])]
        if kind == "Sub" and self._at_most(node.input[1], node.input[0]):
            return [node.input[0]]
        if kind == "BitShift" and any(a.name == "direction" and a.s == b"RIGHT" for a in node.attribute):
            return [node.input[0]]
        return [node.input[0]] if _reduces(node, "ReduceMin") else list(node.input[_LOWERS.get(kind, slice(0))])

    def _multiple_of(self, name: str, factor: str) -> list[str]:
        """What has been divided by a factor that multiplies the quotient."""
        node = self._makers.get(name)
        if node is None or node.op_type != "Div" or not self._same(node.input[1], factor):
            return []
        return [node.input[0]]

    def _cast_alike(self, one: NodeProto, other: NodeProto) -> bool:
        """Whether both are cast from and to an unsigned type, and stay the same numbers."""
        if one.op_type != "Cast" or other.op_type != "Cast":
            return False
        types = {next((a.i for a in node.attribute if a.name == "to"), 0) for node in (one, other)}
        most = min(LIMITS[kind][1] for kind in {_T.INT32, *types} if kind in LIMITS)
        read = [self._value(node.input[0]) for node in (one, other)]
        return len(types) == 1 and all(v.elem_type in _UNSIGNED and v.within(0, most) for v in read)

    def _chosen_above_0(self, node: NodeProto) -> bool:
        """Whether a Where chooses the difference of two numbers by which of them is the larger one."""
        condition = self._makers.get(node.input[0])
        larger = _LARGER.get(condition.op_type) if condition is not None else None
        if condition is None or larger is None:
            return False
        compared = condition.input[1 - larger], condition.input[larger]
        for name, (less, more) in zip(node.input[1:], (compared, compared[::-1]), strict=True):
            if not self._value(name).below_0:
                continue
            made = self._makers.get(name)
            if made is None or made.op_type != "Sub" or self._value(made.input[0]).below_0:
                return False
            if not (self.at_most(made.input[1], less) and self.at_most(more, made.input[0])):
                return False
        return True


def _below(node: NodeProto) -> list[str]:
    """Inputs that the result of a node is at least."""
    if _reduces(node, "ReduceMax"):
        return [node.input[0]]
    return list(node.input[_RAISES.get(node.op_type, slice(0))])


def _reduces(node: NodeProto, kind: str) -> bool:
    """Whether it is such a reduction whose results go beside the elements that they are made of."""
    return node.op_type == kind and not any(a.name == "keepdims" and not a.i for a in node.attribute)
