# SPDX-License-Identifier: Apache-2.0
"""Wide integer inputs of which an engine computes the same in floating point, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.beyond_int32 import SHAPE_ALONE
from onnx_multi_backend.adapt.intervals.constant_values import of_constant, of_tensor
from onnx_multi_backend.adapt.intervals.values import SMALL, Value
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs

_T = TensorProto
_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_CASTS = frozenset({_T.FLOAT, _T.DOUBLE, _T.BOOL})


def exact_in_float(graph: GraphProto, names: Collection[str]) -> frozenset[str]:
    """The inputs of these names that are cast to floating point or bool, compared with small constants or asked for zeros alone.

    A number that is rounded to a float32 stays 0 or not 0, and on its side of one that a float32 holds.
    """
    left = set(names).difference(v.name for v in graph.output)
    left.difference_update(t.name for t in graph.initializer)
    made: dict[str, NodeProto] = {}

    def value_of(name: str) -> Value:
        """Of a constant; as it is asked for seldom, the others are not looked at."""
        if name in made:
            return of_constant(made[name])
        return next((of_tensor(t) for t in graph.initializer if t.name == name), Value())

    for node in graph.node:
        if not left:
            break
        operator = node.op_type
        if operator == "Constant":
            made[node.output[0]] = node
        elif node.domain or may_hold_graphs(operator):
            left.difference_update(name for name in reads(node) if name not in node.input)
        for i, name in enumerate(node.input):
            if name in left and not _is_exact(node, i, value_of) and not _is_counted(graph, node):
                left.discard(name)
    return frozenset(left)


def _is_counted(graph: GraphProto, node: NodeProto) -> bool:
    """Whether a sequence is made of which the length alone is read."""
    if node.op_type != "SequenceConstruct" or canonical(node.domain):
        return False
    made = node.output[0]
    readers = [other for other in graph.node if made in reads(other)]
    return all(other.op_type == "SequenceLength" for other in readers) and made not in {v.name for v in graph.output}


def _is_exact(node: NodeProto, place: int, value_of: Callable[[str], Value]) -> bool:
    kind = node.op_type
    if canonical(node.domain):
        return False
    if kind == "Cast":
        return any(a.name == "to" and a.i in _CASTS for a in node.attribute)
    if kind in _COMPARISONS and len(node.input) == 2:
        other = value_of(node.input[1 - place])
        return node.input[0] == node.input[1] or other.within(-SMALL + 1, SMALL - 1)
    return kind == "NonZero" or kind in SHAPE_ALONE or (kind == "CastLike" and place == 1)
