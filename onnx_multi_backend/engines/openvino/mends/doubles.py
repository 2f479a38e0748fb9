# SPDX-License-Identifier: Apache-2.0
"""Sums of float64 constants, over which OpenVINO's transformations (2026.4) never end where one is added to another.

The CPU plugin computes float64 in float32: written so from the beginning, a sum is folded.
"""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.mends.folded import is_folded
from onnx_multi_backend.models.contents import Contents

_SUMS = frozenset({"Add", "Subtract"})
#: ONNX's operators that make what an attribute of these names says of known values of another type.
_NAMING = ("BlackmanWindow", "Cast", "EyeLike", "HammingWindow", "HannWindow", "MelWeightMatrix")
_NAMES = frozenset({"dtype", "output_datatype", "to"})


def has_doubles(contents: Contents) -> bool:
    """Whether a model may have constants of float64."""
    inputs = (value.type.tensor_type.elem_type for value in contents.model.graph.input)
    named = (a.i for node in contents.of(*_NAMING) for a in node.attribute if a.name in _NAMES)
    return any(TensorProto.DOUBLE in kinds for kinds in (contents.tensor_types, inputs, named))


def sums_in_single(graph: Any) -> list[Any]:
    """Write the sums of what is computed of constants in float32, in a read model or in a body.

    Returns
    -------
    list of openvino.Node
        What was there before.
    """
    computed: set[str] = set()  # of constants alone
    found = []
    for op in graph.get_ordered_ops():
        read = (
            1 if op.get_type_name() == "ConvertLike" else op.get_input_size()
        )  # of the second it takes the type alone
        operands = [op.input_value(i).get_node().get_name() for i in range(read)]
        if not is_folded(op) and not (operands and computed.issuperset(operands)):
            continue
        computed.add(op.get_name())
        if op.get_type_name() not in _SUMS or op.get_output_element_type(0).get_type_name() != "f64":
            continue
        if any(op.input_value(i).get_node().get_type_name() != "Constant" for i in (0, 1)):
            found.append(op)
    for op in found:
        _in_single(op)
    return found


def _in_single(op: Any) -> None:
    ov = runtime.load()
    ops = ov.opset8
    make = ops.add if op.get_type_name() == "Add" else ops.subtract
    result = ops.convert(make(*(ops.convert(op.input_value(i), "f32") for i in (0, 1))), "f64")
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
