# SPDX-License-Identifier: Apache-2.0
"""A model of one node, for `run_node`."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper

from onnx_multi_backend.adapt import Limits
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import InputError, InvalidModelError, OptionError, OptionTypeError
from onnx_multi_backend.models.graph_walk import nodes_in, operator_name
from onnx_multi_backend.presets.node_types import OutputsInfo, described, type_of

_ML = "ai.onnx.ml"
#: onnx has no number for a newer one.
_NEWEST = 2**31 - 1


def build(
    node: NodeProto,
    inputs: Any,
    outputs_info: OutputsInfo | None,
    opset_version: int | None,
    target: Target,
) -> tuple[ModelProto, dict[str, Any]]:
    """Wrap a node in a model, its types taken from the inputs.

    Returns
    -------
    model : onnx.ModelProto
    feeds : dict of str to value

    Raises
    ------
    InputError
        The inputs or `outputs_info` do not fit the node.
    OptionError
        `opset_version` is no number of an opset.
    InvalidModelError
        The node is not valid.
    """
    if not isinstance(node, NodeProto):
        raise InvalidModelError(
            f"A node is an onnx.NodeProto; {type(node).__name__} was given. Make one with onnx.helper.make_node; run_model "
            "takes a whole model."
        )
    limits = target.limits
    node, feeds = _feeds(node, inputs)
    graph_inputs = [onnx.ValueInfoProto(name=name, type=type_of(value, name)) for name, value in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    if outputs_info is not None:
        for value, known in zip(outputs, described(outputs_info, node), strict=True):
            value.type.CopyFrom(known)
    graph = onnx.GraphProto(name=node.op_type or "node", node=[node], input=graph_inputs, output=outputs)
    model = ModelProto(ir_version=_ir_version(limits), graph=graph, opset_import=_opsets(node, opset_version, limits))
    if outputs_info is None:
        _infer_outputs(model, target)
    return model, feeds


def _feeds(node: NodeProto, inputs: Any) -> tuple[NodeProto, dict[str, Any]]:
    """Name the inputs; the node loses those that are None."""
    present = list(dict.fromkeys(name for name in node.input if name))
    listed = ", ".join(present) or "none"
    if isinstance(inputs, Mapping):
        named = dict(inputs)
        outer = {name for inner in nodes_in([node]) for name in inner.input}  # a subgraph reads outer names too
        if unknown := [name for name in named if name not in outer]:
            raise InputError(f"{node.op_type} has no input {', '.join(map(repr, unknown))}. Its inputs are {listed}.")
        if missing := [name for name in present if name not in named]:
            what = "input" if len(missing) == 1 else "inputs"
            raise InputError(
                f"{node.op_type}: {what} {', '.join(map(repr, missing))} missing. Its inputs are {listed}."
            )
    else:
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        names = list(node.input) if len(values) == len(node.input) else present
        if len(values) != len(names):
            raise InputError(f"{node.op_type} has the inputs {listed}; {len(values)} values given.")
        named = {}
        for name, value in zip(names, values, strict=True):
            if name and name in named and not (value is named[name] or np.array_equal(value, named[name])):
                raise InputError(f"{node.op_type} reads {name!r} twice; two different values were given for it.")
            if name:
                named[name] = value
    left_out = {name for name, value in named.items() if value is None}
    if left_out:
        kept = [("" if name in left_out else name) for name in node.input]
        node = NodeProto.FromString(node.SerializeToString())
        del node.input[:]
        node.input.extend(kept)
    return node, {name: value for name, value in named.items() if value is not None}


def _ir_version(limits: Limits) -> int:
    limit = limits.max_ir_version()
    return onnx.IR_VERSION if limit is None else min(onnx.IR_VERSION, limit)


def _opsets(node: NodeProto, version: int | None, limits: Limits) -> list[onnx.OperatorSetIdProto]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    newest = {"": onnx.defs.onnx_opset_version(), _ML: onnx.defs.onnx_ml_opset_version()}
    chosen = {d: n if (limit := limits.max_opset(d)) is None else min(n, limit) for d, n in newest.items()}
    if version is not None:
        chosen[domain] = _checked(version)
    wanted = {"": chosen[""], domain: chosen.get(domain, 1)}
    return [helper.make_opsetid(d, v) for d, v in wanted.items()]


def _checked(version: Any) -> int:
    if isinstance(version, bool) or not isinstance(version, numbers.Integral):
        raise OptionTypeError(f"opset_version is a whole number, or None for the newest; {version!r} was given.")
    if not 1 <= int(version) <= _NEWEST:
        raise OptionError(f"opset_version is between 1 and {_NEWEST}; {version} was given.")
    return int(version)


def _infer_outputs(model: ModelProto, target: Target) -> None:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, IndexError) as error:
        # An IndexError where onnx (1.23) reads the first element of a constant that has none.
        raise InvalidModelError(f"{model.graph.node[0].op_type} does not fit its inputs: {error}") from error
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        if found.type.WhichOneof("value") is not None:
            value.type.CopyFrom(found.type)
        elif (known := target.output_type(model, value.name)) is not None:
            value.type.CopyFrom(known)
        else:
            _explain_unknown_type(model, value.name)


def _explain_unknown_type(model: ModelProto, name: str) -> NoReturn:
    node = model.graph.node[0]
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
        if node.domain in ("", "ai.onnx", _ML):
            onnx.defs.get_schema(node.op_type, model.opset_import[0].version, node.domain)
    except (onnx.shape_inference.InferenceError, onnx.defs.SchemaError) as error:
        raise InvalidModelError(f"{operator_name(node)} is not valid: {error}") from error
    raise InputError(f"The type of {operator_name(node)}'s output {name!r} cannot be inferred: pass outputs_info.")
