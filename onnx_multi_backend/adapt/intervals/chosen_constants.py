# SPDX-License-Identifier: Apache-2.0
"""Results that may leave int32, of constants that each run chooses from: by an index, a condition or a mask, but by no number of the input's.

No bound on an input holds such a result within int32.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.made_values import MOVED
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS, bodies, canonical, nodes_in, subgraphs

_LONG = frozenset({TensorProto.INT64, TensorProto.UINT64})
#: What tells sizes, whatever the elements are.
_SIZES = frozenset({"Shape", "Size"})
#: What adds up or multiplies its first input along axes, beside the reductions.
_ALONG = frozenset({"CumProd", "CumSum"})


#: A node, its operands, and whether its result is large.
_Told = tuple[NodeProto, list[Value], bool]


class Chosen:
    """Notes the nodes whose results may leave int32, where their operands are constants or chosen from constants.

    What is computed from constants alone is computed ahead; see `constant_reductions`.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its nodes and those of its subgraphs are told in order, those of a subgraph before the node that holds it.
    """

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._told: list[_Told] = []
        self._any_large = False

    def __call__(self, node: NodeProto, operands: list[Value], made: Made) -> None:
        """Be told of a node of any domain."""
        whole = made.whole
        large = (
            whole is not None
            and whole.elem_type in _LONG
            and whole.low is not None
            and not whole.in_int32
            and not whole.sources  # of an input's numbers, a bound holds it
        )
        self._told.append((node, operands, large))
        self._any_large = self._any_large or large

    def leaving(self) -> list[NodeProto]:
        """The nodes, once all are told."""
        if not self._any_large:
            return []
        search = _Search(self._graph)
        return [node for node, operands, large in self._ancestors() if search.is_chosen(node, operands) and large]

    def _ancestors(self) -> list[_Told]:
        """The nodes of large results, and those that these may be computed from, in order."""
        needed: set[str] = set()
        found = []
        for told in reversed(self._told):
            node = told[0]
            if told[2] or not needed.isdisjoint(node.output):
                needed.update(node.input)
                needed.update(value.name for graph in bodies(node) for value in graph.output)
                found.append(told)
        return found[::-1]


class _Search:
    """Goes through the nodes in order."""

    def __init__(self, graph: GraphProto) -> None:
        graphs = [graph, *(inner for node in nodes_in(graph.node, functions=False) for inner in bodies(node))]
        self._fixed = {
            tensor.name for each in graphs for tensor in each.initializer
        }  # OpenVINO makes constants of defaults too
        self._chosen: set[str] = set()

    def is_chosen(self, node: NodeProto, operands: list[Value]) -> bool:
        """Whether a run chooses the node's results from constants."""
        self._fixed.difference_update(node.output)  # another branch may have the name
        self._chosen.difference_update(node.output)
        if node.op_type not in WITH_GRAPHS and all(name in self._fixed for name in node.input if name):
            self._fixed.update(node.output)
            return False
        if canonical(node.domain) or not self._chooses(node, operands):
            return False
        self._chosen.update(node.output)
        return True

    def _chooses(self, node: NodeProto, operands: list[Value]) -> bool:
        if node.op_type == "If":
            return all(self._is_known(value.name) for graph in subgraphs(node) for value in graph.output)
        if node.op_type in WITH_GRAPHS or node.op_type in _SIZES:
            return False
        if node.op_type == "Cast" and operands[0].elem_type == TensorProto.BOOL:
            return True  # of 0 and 1
        if node.op_type == "ConstantOfShape":
            return True
        read = list(node.input)
        if node.op_type in MOVED:
            read = [read[i] for i in MOVED[node.op_type] if i < len(read)]
        elif node.op_type in _ALONG or node.op_type.startswith("Reduce"):
            read = read[:1]
        return any(read) and all(map(self._is_known, filter(None, read)))

    def _is_known(self, name: str) -> bool:
        return name in self._fixed or name in self._chosen
