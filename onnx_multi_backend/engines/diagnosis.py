# SPDX-License-Identifier: Apache-2.0
"""Explaining a refusal: which nodes an engine does not take, and why. Runs only once an engine has said no."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend import checks
from onnx_multi_backend.adapt import Limits, adapt
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.errors import UnsupportedModelError
from onnx_multi_backend.graph_walk import operator_name

#: Compiles a model of one node; returns the engine's complaint, or None.
Accepts = Callable[[ModelProto], "str | None"]

_MOST_PROBES = 64
_MOST_REASONS = 20


def refusal(
    payload: Payload, complaint: str, accepts: Accepts, *, limits: Limits, who: str, lacks_kernel: bool
) -> UnsupportedModelError:
    """The error for a model that an engine refused.

    Parameters
    ----------
    complaint : str
        The engine's own words.
    accepts : callable
        Tries one node on the engine.
    limits : Limits
        Each node is tried after the adaptations that it allows by itself, so that one operator which cannot be brought
        down does not make the others look guilty.
    who : str
        The preset, for the message.
    lacks_kernel : bool
        The engine said itself that it lacks a kernel: then the model is not to blame and is not checked.

    Raises
    ------
    InvalidModelError
        The model is not valid ONNX, which explains the refusal better.
    """
    if not lacks_kernel:
        checks.check(payload.loaded, full=True)
    reasons: list[str] = []
    operators: list[str] = []
    for node, words in _refused_nodes(payload.adapted.proto, accepts, limits):
        operator = operator_name(node)
        named = f"{operator} {node.name!r}" if node.name else f"{operator} (output {next(iter(node.output), '')!r})"
        reasons.append(f"{named}: {words}")
        if operator not in operators:
            operators.append(operator)
    if reasons:
        text = f"{who} cannot run {payload.loaded.label}: it lacks {', '.join(operators)}. " + "; ".join(reasons[:5])
    else:
        reasons = [complaint]
        text = f"{who} cannot run {payload.loaded.label}: {complaint}"
    return UnsupportedModelError(
        f"{text}. Choose a preset that has these operators; `onnx-multi-backend inspect` compares them.",
        operators=operators,
        reasons=reasons[:_MOST_REASONS],
    )


def _refused_nodes(model: ModelProto, accepts: Accepts, limits: Limits) -> Iterator[tuple[NodeProto, str]]:
    answers: dict[bytes, str | None] = {}
    for node, single in _single_node_models(model):
        key = single.SerializeToString(deterministic=True)
        if key not in answers:
            if len(answers) >= _MOST_PROBES:
                return
            answers[key] = accepts(adapt(single, limits).proto)
        words = answers[key]
        if words is not None:
            yield node, words


def _single_node_models(model: ModelProto) -> Iterator[tuple[NodeProto, ModelProto]]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError):  # above 2 GB, or a node that cannot be inferred
        inferred = model
    graph = inferred.graph
    types = {v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output)}
    constants = {  # what lies in another file cannot be read from a model in memory
        t.name: t for t in graph.initializer if t.ByteSize() < 4096 and t.data_location != TensorProto.EXTERNAL
    }
    for t in graph.initializer:
        types.setdefault(t.name, helper.make_tensor_type_proto(t.data_type, list(t.dims)))
    for node in model.graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
        single = _single(model, node, types, constants)
        if single is not None:
            yield node, single


def _single(
    model: ModelProto, node: NodeProto, types: dict[str, TypeProto], constants: dict[str, onnx.TensorProto]
) -> ModelProto | None:
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return None  # a subgraph may read names from outside
    names = list(dict.fromkeys(name for name in node.input if name))
    if any(name not in types and name not in constants for name in names):
        return None
    inputs = {name: f"i{i}" for i, name in enumerate(names)}
    outputs = [f"o{i}" if name else "" for i, name in enumerate(node.output)]
    probe = NodeProto()
    probe.CopyFrom(node)
    probe.name = ""
    del probe.input[:], probe.output[:]
    probe.input.extend(inputs.get(name, "") for name in node.input)
    probe.output.extend(outputs)
    graph = onnx.GraphProto(name="probe", node=[probe])
    for name, short in inputs.items():
        if name in constants:
            tensor = graph.initializer.add()
            tensor.CopyFrom(constants[name])
            tensor.name = short
        else:
            value = graph.input.add(name=short)
            value.type.CopyFrom(types[name])
    for name, short in zip(node.output, outputs, strict=True):
        if short:
            value = graph.output.add(name=short)
            if name in types:
                value.type.CopyFrom(types[name])
    return ModelProto(
        ir_version=model.ir_version, graph=graph, opset_import=model.opset_import, functions=model.functions
    )
