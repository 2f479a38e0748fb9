# SPDX-License-Identifier: Apache-2.0
"""Operators that an engine computes wrongly of a tensor without elements, or dies of, where something else than the inputs of a run may empty it.

What the inputs of a run empty is known before it; see `sessions/for_nothing.py`. A Slice, a Compress or the boxes that a detector finds tell only
as the model runs. There the operator becomes the branch of an If, whose other branch makes the result of nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    helper,
    numpy_helper,
)

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.emptied import EMPTYING, emptied
from onnx_multi_backend.engines.across_nodes.results_of_nothing import OLDEST, RESULTS, Branch, is_plain, untold
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back
from onnx_multi_backend.models.tensors import has_zero

_KINDS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL, *INTEGER_BITS})
#: The axes in front of an image's own, and of a recurrent layer's features.
_IMAGE_AXES = _SEQUENCE_AXES = 2
_PASS = "nothing_guarded"
_DONE = "computed only where its input has elements"
_REASON = "the engine's kernel is wrong of a tensor without elements, or ends the process"


def nothing_guarded(contents: Contents, operators: Collection[str], *, of_inputs: bool = False) -> Rewritten | None:
    """A copy of the model in which such operators are computed only of tensors with elements; None where there are none.

    Parameters
    ----------
    contents : Contents
    operators : collection of str
        Those that the engine gets wrong.
    of_inputs : bool
        Whether what the inputs of a run empty counts too, since nothing else is done about that.
    """
    if not contents.has(operators) or not (of_inputs or contents.has(EMPTYING)):
        return None
    if not contents.model.functions and not of_inputs and not _may_be_meant(contents.model.graph, operators):
        return None
    flat = flat_for(contents)
    if flat is None or opset_versions(flat).get("", 1) < OLDEST:
        return None
    graphs = inner_first(flat.graph)
    given = flat.graph.input
    symbols = {d.dim_param for value in given for d in value.type.tensor_type.shape.dim} - {""}
    if of_inputs:
        meant = _Meant(operators, emptied(graphs, [value.name for value in given]), frozenset())
    else:
        meant = _Meant(operators, emptied(graphs, _empty_inputs(flat.graph)), symbols)
    if not any(meant.reads(node) for graph in graphs for node in graph.node):
        return None
    types = walked_of(contents).types
    found = [
        {place: names for place, node in enumerate(graph.node) if (names := meant.unsafe(node, types))}
        for graph in graphs
    ]
    if not any(found):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, changes, added = names_taken(copy), list[Adaptation](), set[str]()
    for graph, places in zip(inner_first(copy.graph), found, strict=True):
        nodes: list[NodeProto] = []
        for place, node in enumerate(graph.node):
            written = _guarded(node, places[place], types, taken) if place in places else [node]
            if place in places:
                added.update(new.name for new in written)
                changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or node.output[0]!r}", _DONE, _REASON))
            nodes += written
        if places:
            put_back(graph, nodes)
    return Rewritten(copy, tuple(changes), frozenset(added))


def _may_be_meant(graph: GraphProto, operators: Collection[str]) -> bool:
    """Whether such a node reads what may be emptied, where no inference is needed to tell."""
    graphs = inner_first(graph)
    meant = _Meant(operators, emptied(graphs, _empty_inputs(graph)), frozenset())
    return any(meant.reads(node) for inner in graphs for node in inner.node)


def _empty_inputs(graph: GraphProto) -> list[str]:
    """The inputs that are known to have no elements: the model is compiled for a run in which they have none."""
    return [v.name for v in graph.input if has_zero(v.type.tensor_type.shape.dim)]


class _Meant:
    """Tells which nodes of a model may be wrong, where no size with one of some symbols is 0."""

    def __init__(self, operators: Collection[str], emptied: Collection[str], symbols: Collection[str]) -> None:
        self._operators, self._emptied, self._symbols = operators, emptied, symbols

    def reads(self, node: NodeProto) -> list[str]:
        """Those of the inputs that count which something may empty."""
        if node.op_type not in self._operators or canonical(node.domain):
            return []
        inputs = node.input if node.op_type == "Einsum" else node.input[:1]
        return [name for name in inputs if name in self._emptied]

    def unsafe(self, node: NodeProto, types: Mapping[str, TypeProto.Tensor]) -> list[str]:
        """The same, without those of which the sizes tell that nothing does, or for which nothing can be written."""
        read = [name for name in self.reads(node) if name in types and types[name].HasField("shape")]
        if not read or types[read[0]].elem_type not in _KINDS or (node.op_type == "Einsum" and not is_plain(node)):
            return []
        return [name for name in read if any(map(self._may_be_zero, _that_count(node, types[name].shape.dim)))]

    def _may_be_zero(self, size: TensorShapeProto.Dimension) -> bool:
        return not size.dim_value and size.dim_param not in self._symbols


def _that_count(node: NodeProto, sizes: Sequence[TensorShapeProto.Dimension]) -> Sequence[TensorShapeProto.Dimension]:
    """The sizes of an input of which a 0 leads astray."""
    if node.op_type == "InstanceNormalization":
        return sizes[_IMAGE_AXES:]
    return sizes[:_SEQUENCE_AXES] if node.op_type in LAYERS else sizes


def _guarded(
    node: NodeProto, names: Sequence[str], types: Mapping[str, TypeProto.Tensor], taken: set[str]
) -> list[NodeProto]:
    """The nodes that compute a node only where these of its inputs have elements."""
    prefix = unused(f"{node.output[0]}{CAST}guarded", taken)
    kind = types[names[0]]
    branch = Branch(node, kind.elem_type, len(kind.shape.dim), f"{prefix}/nothing")
    empty = branch.finished(RESULTS[node.op_type](branch))
    inner = NodeProto()
    inner.CopyFrom(node)
    made = [name for name in node.output if name]
    inner.output[:] = [f"{prefix}/{name}" if name else "" for name in node.output]
    plain = helper.make_graph([inner], f"{prefix}/branch", [], [untold(name) for name in inner.output if name])
    zero = numpy_helper.from_array(np.array(0, np.int64))
    written = [helper.make_node("Constant", [], [f"{prefix}/zero"], name=f"{prefix}/zero", value=zero)]
    tests: list[str] = []
    for i, name in enumerate(names):
        count, test = f"{prefix}/count{i}", f"{prefix}/test{i}"
        written.append(helper.make_node("Size", [name], [count], name=count))
        written.append(helper.make_node("Equal", [count, f"{prefix}/zero"], [test], name=test))
        if tests:
            both = f"{prefix}/any{i}"
            written.append(helper.make_node("Or", [tests[-1], test], [both], name=both))
            test = both
        tests.append(test)
    written.append(helper.make_node("If", [tests[-1]], made, name=prefix, then_branch=empty, else_branch=plain))
    return written
