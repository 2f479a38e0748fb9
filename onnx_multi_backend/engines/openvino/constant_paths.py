# SPDX-License-Identifier: Apache-2.0
"""What is computed of constants alone, and read by what is not: OpenVINO's CPU plugin may write the reader's result over it.

Of what OpenVINO's transformations do not fold, the plugin makes layers that run once, before the first run. An elementwise layer that reads
one works in place all the same, so that each run goes on with the result of the one before (seen with 2026.4: Elu, Conv, LRN, AveragePool and
GatherElements of constants before Add, Sub, Mul, Div). Here OpenVINO computes such values while the model is loaded, and constants take
their place: those are never written to. A product of two such values is wrong where the first is transposed: its operands are computed so too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
from onnx_multi_backend.models.contents import Contents

#: ONNX's operators that OpenVINO's transformations fold, whatever the types.
_FOLDED = frozenset(
    {
        *("Add", "Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "DequantizeLinear", "Div", "Expand"),
        *("Flatten", "Gather", "Identity", "Mul", "Neg", "Range", "Reshape", "Shape", "Size", "Slice", "Split"),
        *("Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze"),
    }
)
#: Operators of which OpenVINO makes several layers, the first of them of the first inputs alone.
_IN_PARTS = frozenset(
    {
        *("BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "Gemm"),
        *("GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMulInteger"),
        *("QLinearConv", "QLinearMatMul", "RNN"),
    }
)
#: OpenVINO's layers that make something new of a constant, and whose readers need their weights as they are stored.
_READ_WEIGHTS = frozenset(
    {
        *("Convolution", "ConvolutionBackpropData", "Gather", "GroupConvolution", "GroupConvolutionBackpropData"),
        *("MatMul", "Result"),
    }
)
#: Those that the plugin refuses to compute of what it computes of constants, where their own input is mended.
_OF_CONSTANTS = frozenset({"NonZero"})
_WRITTEN_OVER = (
    "what is computed of constants is written over by the elementwise layer that reads it, in each run once more"
)
_TRANSPOSED = "a product of what is computed of constants is wrong where the first operand is transposed"
_NOT_CONSTANT = frozenset({"Parameter", "ReadValue", "Assign", "RandomUniform", "Multinomial"})


def fold(read: Any, contents: Contents) -> tuple[Adaptation, ...]:
    """Put constants in place of such values, in a read model.

    Parameters
    ----------
    read : openvino.Model
    contents : Contents
        Of what it was read from: a model without such values is not walked through again.
    """
    if not _may_have(contents):
        return ()
    graphs = list(graphs_of(read))
    changes = [change for graph in graphs for ends in _products(graph) for change in _computed(ends, _TRANSPOSED)]
    changes += _computed([end for graph in graphs for end in _ends(graph)], _WRITTEN_OVER)
    return tuple(changes)


def _computed(ends: list[Any], reason: str) -> list[Adaptation]:
    """Put constants in place of what goes into these inputs of layers."""
    if not ends:
        return []
    ov = runtime.load()
    sources = {_identity(end.get_source_output()): end.get_source_output() for end in ends}
    model = ov.Model([ov.opset8.result(source) for source in sources.values()], [], "constants").clone()
    importlib.import_module("openvino.passes").ConstantFolding().run_on_model(model)
    folded = [result.input_value(0).get_node().get_type_name() == "Constant" for result in model.get_results()]
    if all(folded):
        return []
    request = runtime.core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    request.infer()
    changes, constants = [], {}
    for i, (identity, source) in enumerate(sources.items()):
        if folded[i]:
            continue
        constants[identity] = ov.op.Constant(request.get_output_tensor(i), shared_memory=False)
        node = source.get_node()
        where = f"{node.get_type_name()} {node.get_friendly_name()!r}"
        changes.append(Adaptation("mend_frontend", where, "computed while the model is loaded", reason))
    for end in ends:
        if (constant := constants.get(_identity(end.get_source_output()))) is not None:
            end.replace_source_output(constant.output(0))
    return changes


def _may_have(contents: Contents) -> bool:
    facts = Facts(contents.model, contents)
    if any(node.op_type not in _FOLDED for node in facts.nodes_of_constants):
        return True
    known = facts.known | facts.computed_of_constants
    return any(next(filter(None, node.input), "") in known for node in contents.of(*_IN_PARTS))


def _ends(graph: Any) -> Iterator[Any]:
    """The inputs of layers that read something else too, and here what is computed of constants."""
    for op, known in _known_inputs(graph):
        if op.get_type_name() in _OF_CONSTANTS if all(known) else op.get_type_name() not in _READ_WEIGHTS:
            yield from _unfolded(op, known)


def _products(graph: Any) -> Iterator[list[Any]]:
    """The inputs of each product of matrices that are both known, the first product first."""
    for op, known in _known_inputs(graph):
        if op.get_type_name() == "MatMul" and all(known):
            yield list(_unfolded(op, known))


def _known_inputs(graph: Any) -> Iterator[tuple[Any, list[bool]]]:
    """The layers, and which of their inputs are computed of constants."""
    constant: set[int] = set()
    for op in graph.get_ordered_ops():
        if op.get_type_name() == "Constant":
            constant.add(op.get_instance_id())
        elif (count := op.get_input_size()) and op.get_type_name() not in _NOT_CONSTANT:
            known = [op.input_value(i).get_node().get_instance_id() in constant for i in range(count)]
            if all(known):
                constant.add(op.get_instance_id())
            yield op, known


def _unfolded(op: Any, known: list[bool]) -> Iterator[Any]:
    for i, is_known in enumerate(known):
        source = op.input_value(i).get_node()
        if is_known and source.get_type_name() != "Constant" and _has_bytes(op.get_input_element_type(i)):
            yield op.input(i)


def _has_bytes(kind: Any) -> bool:
    """Whether a number of a type has whole bytes."""
    return bool((kind.is_real() or kind.is_integral()) and kind.size * 8 == kind.bitwidth)


def _identity(source: Any) -> tuple[int, int]:
    return source.get_node().get_instance_id(), source.get_index()
