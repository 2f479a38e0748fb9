# SPDX-License-Identifier: Apache-2.0
"""A model of one node, for `run_node`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper

from onnx_multi_backend.adapt import Limits
from onnx_multi_backend.errors import InputError, InvalidModelError
from onnx_multi_backend.tensors import OBJECT, numpy_dtype

_ML = "ai.onnx.ml"


def build(
    node: NodeProto,
    inputs: Any,
    outputs_info: Sequence[tuple[Any, Sequence[int]]] | None,
    opset_version: int | None,
    limits: Limits,
) -> tuple[ModelProto, dict[str, Any]]:
    """Wrap a node in a model, its types taken from the inputs.

    Returns
    -------
    model : onnx.ModelProto
    feeds : dict of str to value

    Raises
    ------
    InputError
        The inputs do not fit the node.
    InvalidModelError
        The node is not valid.
    """
    feeds = _feeds(node, inputs)
    graph_inputs = [onnx.ValueInfoProto(name=name, type=_type_of(value, name)) for name, value in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    if outputs_info is not None:
        if len(outputs_info) != len(outputs):
            raise InputError(f"outputs_info describes {len(outputs_info)} outputs; {node.op_type} has {len(outputs)}.")
        for value, (dtype, shape) in zip(outputs, outputs_info, strict=True):
            value.type.CopyFrom(helper.make_tensor_type_proto(_elem_type(np.dtype(dtype)), list(shape)))
    graph = onnx.GraphProto(name=node.op_type or "node", node=[node], input=graph_inputs, output=outputs)
    model = ModelProto(ir_version=_ir_version(limits), graph=graph, opset_import=_opsets(node, opset_version, limits))
    if outputs_info is None:
        _infer_outputs(model)
    return model, feeds


def _feeds(node: NodeProto, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    names = list(node.input)
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if len(values) == len(names):
        return {name: value for name, value in zip(names, values, strict=True) if name and value is not None}
    present = [name for name in names if name]
    if len(values) != len(present):
        raise InputError(f"{node.op_type} has the inputs {', '.join(present) or 'none'}; {len(values)} values given.")
    return dict(zip(present, values, strict=True))


def _type_of(value: Any, name: str) -> TypeProto:
    if isinstance(value, (list, tuple)):
        if not value:
            raise InputError(f"input {name!r}: the type of an empty sequence cannot be told; run it in a model.")
        return helper.make_sequence_type_proto(_type_of(value[0], name))
    array = value if hasattr(value, "dtype") and hasattr(value, "shape") else np.asarray(value)
    dtype = np.dtype(object) if array.dtype.kind in "USTO" else array.dtype.newbyteorder("=")
    return helper.make_tensor_type_proto(_elem_type(dtype), list(array.shape))


def _elem_type(dtype: np.dtype[Any]) -> int:
    if dtype == OBJECT or dtype.kind in "UST":
        return int(onnx.TensorProto.STRING)
    for elem_type in onnx.TensorProto.DataType.values():
        if elem_type not in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING) and numpy_dtype(elem_type) == dtype:
            return int(elem_type)
    raise InputError(f"ONNX has no element type for the dtype {dtype.name}.")


def _ir_version(limits: Limits) -> int:
    limit = limits.max_ir_version()
    return onnx.IR_VERSION if limit is None else min(onnx.IR_VERSION, limit)


def _opsets(node: NodeProto, version: int | None, limits: Limits) -> list[onnx.OperatorSetIdProto]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    newest = {"": onnx.defs.onnx_opset_version(), _ML: onnx.defs.onnx_ml_opset_version()}
    chosen = {d: n if (limit := limits.max_opset(d)) is None else min(n, limit) for d, n in newest.items()}
    if version is not None:
        chosen[domain] = version
    wanted = {"": chosen[""], domain: chosen.get(domain, 1)}
    return [helper.make_opsetid(d, v) for d, v in wanted.items()]


def _infer_outputs(model: ModelProto) -> None:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise InvalidModelError(f"{model.graph.node[0].op_type} does not fit its inputs: {error}") from error
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        if found.type.WhichOneof("value") is not None:
            value.type.CopyFrom(found.type)
