# SPDX-License-Identifier: Apache-2.0
"""Layers in a loop that compute in place what every step reads (seen with 2026.4), so that the next step reads their result.

These are Softmax, the scatters, normalizations that an elementwise operator is fused with, attention whose heads are transposed,
rotary embeddings, which OpenVINO makes of two halves of a tensor and products of them, and arithmetic of what is given in another shape.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
from onnx_multi_backend.engines.openvino.mends.broadcasts import ARITHMETIC
from onnx_multi_backend.models.contents import Contents

#: What is written into the memory of its input.
_OVERWRITING = frozenset(
    {
        "MVN",
        "ScaledDotProductAttention",
        "ScatterElementsUpdate",
        "ScatterNDUpdate",
        "ScatterUpdate",
        "Softmax",
        "VariadicSplit",
    }
)
_SLICES = frozenset({"Slice", "StridedSlice"})
#: Operators of ONNX that become one.
_OPERATORS = frozenset(
    """
    Attention Flatten GroupNormalization InstanceNormalization LayerNormalization MeanVarianceNormalization Reshape RotaryEmbedding
    Scatter ScatterElements ScatterND Slice Softmax Split Squeeze TensorScatter Transpose Unsqueeze
    """.split()
)
#: What gives another shape to the same memory, is fused with attention, or may change nothing and be left out.
_VIEWS = frozenset(
    {
        "Broadcast",
        "Concat",
        "Convert",
        "Identity",
        "Reshape",
        "Slice",
        "Squeeze",
        "StridedSlice",
        "Transpose",
        "Unsqueeze",
    }
)


def keep_inputs(read: Any, contents: Contents) -> tuple[Adaptation, ...]:
    """Have such a node overwrite the larger of a value and itself, which is that value, in the bodies of a read model.

    Parameters
    ----------
    read : openvino.Model
        Changed in place.
    contents : Contents
        Of what it was read from.
    """
    if not contents.holding or not (contents.has(_OPERATORS) or contents.model.functions):
        return ()
    changes = []
    for graph in graphs_of(read):
        if graph is read:
            continue
        read_by = [op.input(0) for op in (*_overwriting(graph), *_halves(graph))]
        for given in (*read_by, *_in_another_shape(graph)):
            given.replace_source_output(_copied(given.get_source_output()))
            op = given.get_node()
            where = f"{op.get_type_name()} {op.get_friendly_name()!r}"
            reason = "in a loop OpenVINO computes it in place, and the next step reads the result in the input's place"
            changes.append(Adaptation("mend_frontend", where, "given a copy of its input", reason))
    return tuple(changes)


def _copied(x: Any) -> Any:
    """The larger of a value and itself; of truth values, either."""
    ov = runtime.load()
    copy = ov.opset8.logical_or if x.get_element_type() == ov.Type.boolean else ov.opset8.maximum
    return copy(x, x).output(0)


def _overwriting(graph: Any) -> list[Any]:
    found = []
    for op in graph.get_ops():
        if op.get_type_name() in _OVERWRITING:
            x = op.input_value(0)
            if _is_given(x) or x.get_node().get_type_name() == "Constant":  # of which a state has the memory too
                found.append(op)
    return found


def _in_another_shape(graph: Any) -> list[Any]:
    """The operands of arithmetic that are inputs of the body in another shape."""
    return [
        given
        for op in graph.get_ops()
        if op.get_type_name() in ARITHMETIC
        for given in op.inputs()
        if given.get_source_output().get_node().get_type_name() in _VIEWS and _is_given(given.get_source_output())
    ]


def _halves(graph: Any) -> list[Any]:
    """Slices between constants of what is sliced more than once, and multiplied."""
    slices: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for op in graph.get_ops():
        if op.get_type_name() not in _SLICES or not _is_given(op.input_value(0)):
            continue
        if all(bound.get_node().get_type_name() == "Constant" for bound in op.input_values()[1:3]):
            x = op.input_value(0)
            slices[x.get_node().get_friendly_name(), x.get_index()].append(op)
    return [
        op for found in slices.values() if len(found) > 1 and _is_multiplied(found[0].input_value(0)) for op in found
    ]


def _is_multiplied(value: Any) -> bool:
    return any(target.get_node().get_type_name() == "Multiply" for target in value.get_target_inputs())


def _is_given(value: Any) -> bool:
    """Whether a value is an input of the body, in whatever shape."""
    node = value.get_node()
    while node.get_type_name() in _VIEWS and (node.get_type_name() != "Concat" or node.get_input_size() == 1):
        node = node.input_value(0).get_node()
    return bool(node.get_type_name() == "Parameter")
