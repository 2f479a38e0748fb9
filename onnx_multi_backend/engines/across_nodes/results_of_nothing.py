# SPDX-License-Identifier: Apache-2.0
"""What operators make of tensors without elements, written in other operators, for sizes that only a run tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.models.tensors import numpy_dtype

#: Since this opset there is everything that is written here, but for Identity.
OLDEST = 9


class Branch:
    """The branch of an If that makes the results of a node whose input turns out to have no elements.

    Parameters
    ----------
    node : onnx.NodeProto
    kind : int
        The element type of its first result.
    rank : int
        How many axes its first input has.
    prefix : str
        What the names of its values begin with.
    """

    def __init__(self, node: NodeProto, kind: int, rank: int, prefix: str) -> None:
        self.node, self.kind, self.rank = node, kind, rank
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self._prefix = prefix
        self._nodes: list[NodeProto] = []

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"{self._prefix}{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def ints(self, *values: int) -> str:
        """A list of integers."""
        return self("Constant", value=numpy_helper.from_array(np.array(values, np.int64)))

    def sizes(self, name: str, *axes: int) -> str:
        """The sizes of some axes of a value, as a list."""
        return self("Gather", self("Shape", name), self.ints(*axes))

    def around(self, name: str, before: Sequence[int], between: str, behind: Sequence[int]) -> list[str]:
        """The sizes of some axes of a value, with another between them."""
        parts = [self.sizes(name, *axes) if axes else "" for axes in (before, behind)]
        return [part for part in (parts[0], between, parts[1]) if part]

    def zeros(self, sizes: str, kind: int) -> str:
        """Zeros of these sizes."""
        value = numpy_helper.from_array(np.zeros(1, numpy_dtype(kind)))
        return self("ConstantOfShape", sizes, value=value)

    def finished(self, results: Sequence[str]) -> GraphProto:
        """The graph with the results that the node names."""
        kept = [made for made, name in zip(results, self.node.output, strict=False) if name]
        return helper.make_graph(self._nodes, f"{self._prefix}branch", [], [untold(name) for name in kept])


def untold(name: str) -> ValueInfoProto:
    """A result of a branch, whose type the branch tells."""
    return ValueInfoProto(name=name)


def passed_on(branch: Branch) -> list[str]:
    """The input itself: of operators whose result has its shape."""
    return [branch("Identity", branch.node.input[0])]


def layer(branch: Branch) -> list[str]:
    """Zeros for the results and the states of a recurrent layer. Source: LSTM's and GRU's documentation."""
    x, recurrent = branch.node.input[0], branch.node.input[2]
    directions, hidden = branch.sizes(recurrent, 0), branch.sizes(recurrent, 2)
    if branch.attributes.get("layout"):
        batch, steps = branch.sizes(x, 0), branch.sizes(x, 1)
        rows, state = [batch, steps, directions, hidden], [batch, directions, hidden]
    else:
        batch, steps = branch.sizes(x, 1), branch.sizes(x, 0)
        rows, state = [steps, directions, batch, hidden], [directions, batch, hidden]
    zeros = branch.zeros(branch("Concat", *state, axis=0), branch.kind)
    return [branch.zeros(branch("Concat", *rows, axis=0), branch.kind), zeros, zeros]


def unique(branch: Branch) -> list[str]:
    """None of no values; along an axis, the first of slices that have no elements, which are all alike. Source: NumPy's unique."""
    x, axis = branch.node.input[0], branch.attributes.get("axis")
    if axis is None:
        none = branch.zeros(branch.ints(0), TensorProto.INT64)
        return [branch("Reshape", x, branch.ints(-1)), none, none, none]
    all_ = branch.sizes(x, axis)
    kept = branch("Cast", branch("Greater", all_, branch.ints(0)), to=TensorProto.INT64)
    first = branch("Slice", x, branch.ints(0), kept, branch.ints(axis))
    zeros = branch.zeros(kept, TensorProto.INT64)
    return [first, zeros, branch.zeros(all_, TensorProto.INT64), branch("Expand", all_, kept)]


def top_k(branch: Branch) -> list[str]:
    """No largest elements, of the shape that TopK's documentation tells."""
    x, count = branch.node.input[:2]
    axis = branch.attributes.get("axis", -1) % branch.rank
    count = branch("Reshape", count, branch.ints(1))
    sizes = branch("Concat", *branch.around(x, range(axis), count, range(axis + 1, branch.rank)), axis=0)
    # More than there are is refused, as TopK does.
    first = branch("Slice", x, branch.ints(0), count, branch.ints(axis))
    return [branch("Reshape", first, sizes), branch.zeros(sizes, TensorProto.INT64)]


def one_hot(branch: Branch) -> list[str]:
    """No codes, of the shape that OneHot's documentation tells."""
    x, depth, values = branch.node.input
    axis = branch.attributes.get("axis", -1) % (branch.rank + 1)
    depth = branch("Cast", branch("Reshape", depth, branch.ints(1)), to=TensorProto.INT64)
    sizes = branch("Concat", *branch.around(x, range(axis), depth, range(axis, branch.rank)), axis=0)
    return [branch("Expand", branch("Gather", values, branch.ints(0)), sizes)]


def einsum(branch: Branch) -> list[str]:
    """Sums of nothing, which are 0, of the shape that the equation tells."""
    terms, result = _subscripts(branch.attributes["equation"].decode())
    sizes = []
    for letter in result:
        read = zip(branch.node.input, terms, strict=True)
        found = [branch.sizes(name, at) for name, term in read for at, own in enumerate(term) if own == letter]
        # One of 1 is broadcast, to a size of 0 too.
        some = branch("Min", *found, branch.ints(1))
        sizes.append(branch("Mul", branch("Max", *found), some))
    if not sizes:
        return [branch("Constant", value=numpy_helper.from_array(np.zeros((), numpy_dtype(branch.kind))))]
    return [branch.zeros(branch("Concat", *sizes, axis=0), branch.kind)]


def is_plain(node: NodeProto) -> bool:
    """Whether the equation of an Einsum names all axes."""
    return all(b"." not in a.s for a in node.attribute)


def _subscripts(equation: str) -> tuple[list[str], str]:
    """The letters of each operand and of the result. Source: Einsum's documentation."""
    before, arrow, behind = equation.replace(" ", "").partition("->")
    once = sorted(letter for letter in set(before) - {","} if before.count(letter) == 1)
    return before.split(","), behind if arrow else "".join(once)


#: What makes the results of a node, by operator.
RESULTS: dict[str, Callable[[Branch], list[str]]] = {
    **dict.fromkeys(("InstanceNormalization", "LRN", "LpNormalization"), passed_on),
    "Einsum": einsum,
    "OneHot": one_hot,
    "TopK": top_k,
    "Unique": unique,
    **dict.fromkeys(LAYERS, layer),
}
