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
from typing import Any, NamedTuple

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
from onnx_multi_backend.models.contents import Contents

#: ONNX's operators that OpenVINO's transformations fold, whatever the types. Equal and Where are how PyTorch's exporter writes the shape of an
#: Expand, as often as not of constants alone.
_FOLDED = frozenset(
    """Add Cast CastLike Concat Constant ConstantOfShape DequantizeLinear Div Equal Expand Flatten Gather Identity Mul Neg Range Reshape
    Shape Size Slice Split Sqrt Squeeze Sub Tile Transpose Unsqueeze Where""".split()
)
#: Operators of which OpenVINO makes several layers, the first of them of the first inputs alone.
_IN_PARTS = frozenset(
    {
        *("BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "GRU", "Gemm"),
        *("GroupNormalization", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMulInteger"),
        *("NegativeLogLikelihoodLoss", "QLinearConv", "QLinearMatMul", "RNN", "SoftmaxCrossEntropyLoss"),
    }
)
#: Of these it makes a layer for each two operands.
_OF_MANY = frozenset({"Max", "Mean", "Min", "Sum"})
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
    found = [_computed_operands(graph) for graph in graphs]
    changes: list[Adaptation] = []
    for i, graph in enumerate(graphs):
        while made := next(filter(None, (_computed(ends, _TRANSPOSED) for ends in _products(found[i]))), None):
            changes += made
            found[i] = _computed_operands(graph)
    changes += _computed([end for operands in found for end in _ends(operands)], _WRITTEN_OVER)
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
    if any(next(filter(None, node.input), "") in known for node in contents.of(*_IN_PARTS)):
        return True
    return any(len(node.input) > 2 and known.issuperset(node.input[:2]) for node in contents.of(*_OF_MANY))


class _Layer(NamedTuple):
    """A layer that reads what is computed of constants: which inputs that are, and whether nothing else goes in."""

    op: Any
    computed: list[int]
    alone: bool


def _computed_operands(graph: Any) -> list[_Layer]:
    """The layers that read what is computed of constants, in order."""
    constants: set[int] = set()
    computed: set[int] = set()
    found = []
    for op in graph.get_ordered_ops():
        kind = op.get_type_name()
        if kind == "Constant":
            constants.add(op.get_instance_id())
        elif kind not in _NOT_CONSTANT and (count := op.get_input_size()):
            sources = [op.input_value(i).get_node().get_instance_id() for i in range(count)]
            alone = all(source in constants or source in computed for source in sources)
            if alone:
                computed.add(op.get_instance_id())
            if not computed.isdisjoint(sources):
                found.append(_Layer(op, [i for i, source in enumerate(sources) if source in computed], alone))
    return found


def _ends(layers: list[_Layer]) -> Iterator[Any]:
    """The inputs of layers that read something else too, and here what is computed of constants."""
    for layer in layers:
        kind = layer.op.get_type_name()
        if kind in _OF_CONSTANTS if layer.alone else kind not in _READ_WEIGHTS:
            yield from _unfolded(layer)


def _products(layers: list[_Layer]) -> Iterator[list[Any]]:
    """The inputs of each product of matrices that are both known, the first product first."""
    for layer in layers:
        if layer.alone and layer.op.get_type_name() == "MatMul":
            yield list(_unfolded(layer))


def _unfolded(layer: _Layer) -> Iterator[Any]:
    for i in layer.computed:
        if _has_bytes(layer.op.get_input_element_type(i)):
            yield layer.op.input(i)


def _has_bytes(kind: Any) -> bool:
    """Whether a number of a type has whole bytes."""
    return bool((kind.is_real() or kind.is_integral()) and kind.size * 8 == kind.bitwidth)


def _identity(source: Any) -> tuple[int, int]:
    return source.get_node().get_instance_id(), source.get_index()
