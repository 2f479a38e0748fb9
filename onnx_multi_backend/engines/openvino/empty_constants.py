# SPDX-License-Identifier: Apache-2.0
"""Constants without elements, which OpenVINO's frontend (seen with 2026.4.1) takes for scalars, whatever their shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.empty_tensors import holds_empty_data, is_list, values_of
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.engines.made_empty import nothing, without_computing
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, defaults_of, subgraphs
from onnx_multi_backend.models.tensors import has_zero

_T = TensorProto
#: What OpenVINO's ConstantOfShape and Slice make, whatever ONNX allows in an opset.
_FLOATS = frozenset(
    {_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16, _T.FLOAT8E4M3FN, _T.FLOAT8E5M2, _T.FLOAT8E8M0, _T.FLOAT4E2M1}
)
_TYPES = frozenset({*_FLOATS, _T.BOOL, *INTEGER_BITS})
#: Operators that OpenVINO (2025.4, 2026.4) refuses of a tensor without elements that only a run tells, or gives another shape or value.
WRONG_IN_EMPTY_RUNS = frozenset(
    {
        *("Conv", "ConvInteger", "GridSample", "QLinearConv", "RoiAlign"),
        *("AveragePool", "DepthToSpace", "Flatten", "LpPool", "MaxPool", "SpaceToDepth"),
        *("Attention", "DFT", "Einsum", "GRU", "LSTM", "RNN", "ReduceMax", "ReduceMin", "Scan"),
    }
)
#: Those that then give the results of the run before.
KEEPING = frozenset({"Unique"})
#: The same where that is known while it compiles.
WRONG_WHEN_EMPTY = WRONG_IN_EMPTY_RUNS | {
    *(
        "BatchNormalization",
        "ConvTranspose",
        "GlobalMaxPool",
        "InstanceNormalization",
        "MatMul",
        "PRelu",
    )
}
#: What it may die of too, of constants that it computes ahead: for its execution providers ONNX Runtime does.
_COMPUTED_AHEAD = frozenset({"Concat", "Expand", "Gather", "Split", "Tile", "Trilu", "Where"})
WRONG_WHEN_ALONE = WRONG_WHEN_EMPTY | _COMPUTED_AHEAD


def may_be_misread(contents: Contents) -> bool:
    """Whether a tensor that a model holds has no elements, and its shape may matter; or what is given has none, and is reshaped."""
    return holds_empty_data(contents, _is_empty) or _reshapes_nothing(contents)


def _reshapes_nothing(contents: Contents) -> bool:
    """Whether an input is known to have no elements, and there is a Flatten, or a Reshape with `allowzero`.

    Of the sizes that a Flatten makes, and of those that a Reshape reads from a Shape, OpenVINO takes a 0 for a size of the input.
    """
    reshapes = contents.has({"Flatten"}) or any(
        a.name == "allowzero" for n in contents.of("Reshape") for a in n.attribute
    )
    given = contents.model.graph.input if reshapes else ()
    return any(has_zero(value.type.tensor_type.shape.dim) for value in given)


def with_shapes(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model in which nodes make those whose shape matters, and the record of that."""
    opset = next((o.version for o in model.opset_import if canonical(o.domain) == ""), 1)
    copy = ModelProto()
    copy.CopyFrom(model)
    changes = [*_mend_graph(copy.graph, opset)]
    for function in copy.functions:
        changes += _mend_nodes(function.node, frozenset(function.output), opset)
    reason = "OpenVINO's frontend takes a constant without elements for a scalar"
    made = [Adaptation("empty_constants", name, "made while the model is loaded", reason) for name in changes]
    reason = "its result has no elements"
    made += [
        Adaptation("empty_constants", name, "left out", reason)
        for name in (
            without_computing(copy, _TYPES, opset, believes=True, of_input=True)
            if changes or _reshapes_nothing(Contents(model))
            else ()
        )
    ]
    return (copy, tuple(made)) if made else (model, ())


def _mend_graph(graph: GraphProto, opset: int) -> Iterator[str]:
    overridden = defaults_of(graph)
    results = frozenset(value.name for value in graph.output)
    found = [t for t in graph.initializer if _is_empty(t) and t.name not in overridden]
    yield from _mend_nodes(graph.node, results, opset)
    for tensor in found:
        name = tensor.name
        if name in results or _has_readers(graph.node, name):
            tensor.name = _renamed(name)
            _put(graph.node, 0, name, tensor, opset)
            yield name


def _mend_nodes(nodes: MutableSequence[NodeProto], results: frozenset[str], opset: int) -> Iterator[str]:
    for node in list(nodes):
        for graph in subgraphs(node):
            yield from _mend_graph(graph, opset)
    for i in reversed(range(len(nodes))):
        tensor = next((t for t in values_of(nodes[i]) if _is_empty(t)), None)
        if tensor is not None and (nodes[i].output[0] in results or _has_readers(nodes, nodes[i].output[0])):
            name = nodes[i].output[0]
            nodes[i].output[0] = _renamed(name)
            _put(nodes, i + 1, name, tensor, opset)
            yield name


def _put(nodes: MutableSequence[NodeProto], place: int, name: str, tensor: TensorProto, opset: int) -> None:
    """Make a tensor of this name at a place, and have those read the constant itself that take it for left out."""
    _redirect(nodes, name)
    for node in reversed(nothing(name, tensor.dims, tensor.data_type, opset)):
        nodes.insert(place, node)


def _redirect(nodes: MutableSequence[NodeProto], name: str) -> None:
    for node in nodes:
        for graph in subgraphs(node):
            _redirect(graph.node, name)
        for i, read in enumerate(node.input):
            if read == name and is_list(node, i):
                node.input[i] = _renamed(name)


def _has_readers(nodes: Iterable[NodeProto], name: str) -> bool:
    """Whether anything reads a value for which its shape counts."""
    for node in nodes:
        if any(read == name and not is_list(node, i) for i, read in enumerate(node.input)):
            return True
        if any(_has_readers(graph.node, name) or name in (v.name for v in graph.output) for graph in subgraphs(node)):
            return True
    return False


def _renamed(name: str) -> str:
    return f"{name}/omb_empty"


def _is_empty(tensor: TensorProto) -> bool:
    return 0 in tensor.dims and tensor.data_type in _TYPES
