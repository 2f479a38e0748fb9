# SPDX-License-Identifier: Apache-2.0
"""Nodes that read a tensor of unknown rank, left to the CPU provider: OpenVINO has no tensors of unknown rank.

Its built-in provider (1.24.1) takes such nodes all the same in a model of four nodes or more, and fails to compile them. So each is put in an If,
as `left_to_cpu` does. What it asks is true, which only the run tells: a loop that the provider leaves passes it on. The size of a tensor
would not do, since the provider would take that node too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inference import infer
from onnx_multi_backend.adapt.names import CAST, LEFT
from onnx_multi_backend.adapt.single_node import reads, scope_of
from onnx_multi_backend.engines.ort.branched import branched
from onnx_multi_backend.engines.ort.texts import unused_prefix
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

_REASON = "the OpenVINO execution provider takes nodes that read a tensor of unknown rank, and fails to compile them"


def left_of_unknown_rank(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with these nodes left; nothing is changed where the type of what one makes is not known, or the rank of each input is."""
    model = payload.adapted.proto
    if not any(_has_no_rank(value.type) for value in model.graph.input) or expands_too_far(model):
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    types = scope_of(infer(copy)).types
    found = [i for i, node in enumerate(copy.graph.node) if any(_has_no_rank(types.get(name)) for name in reads(node))]
    made = [name for i in found for name in copy.graph.node[i].output if name]
    if not found or not all(name in types for name in made):
        return payload, ()
    prefix = unused_prefix(copy, f"{CAST}_{LEFT}_rank")
    true = f"{prefix}_true"
    nodes = list(_true_at_run_time(true))
    count = len(nodes)
    for i, node in enumerate(copy.graph.node):
        if i in found:
            node = branched([node], {name: types[name] for name in node.output if name}, true, f"{prefix}{i}")
        nodes.append(node)
    added = {*(node.name for node in nodes[:count]), *(f"{prefix}{i}" for i in found)}
    put_back(copy.graph, nodes)
    _declare(copy, made, types)
    change = Adaptation("left_to_cpu", "", f"nodes that read a tensor of unknown rank ({len(found)})", _REASON)
    return payload.changed(copy, change, inserted=added), (change,)


def _has_no_rank(kind: TypeProto | None) -> bool:
    return kind is not None and kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape")


def _true_at_run_time(made: str) -> Iterator[NodeProto]:
    """A loop of one step that passes on what is true, and a text."""
    one, start, text = (f"{made}_{what}" for what in ("one", "start", "text"))
    for tensor in (
        helper.make_tensor(one, TensorProto.INT64, [], [1]),
        helper.make_tensor(start, TensorProto.BOOL, [], [True]),
        TensorProto(name=text, data_type=TensorProto.STRING, string_data=[b""]),
    ):
        yield helper.make_node("Constant", [], [tensor.name], name=tensor.name, value=tensor)
    states = [
        (f"{made}_go", TensorProto.BOOL),
        (f"{made}_state", TensorProto.BOOL),
        (f"{text}_state", TensorProto.STRING),
    ]
    body = helper.make_graph(
        [helper.make_node("Identity", [f"{name}_in"], [f"{name}_out"], name=f"{name}_out") for name, _ in states],
        f"{made}_body",
        [
            helper.make_tensor_value_info(f"{made}_step", TensorProto.INT64, []),
            *(helper.make_tensor_value_info(f"{name}_in", kind, []) for name, kind in states),
        ],
        [helper.make_tensor_value_info(f"{name}_out", kind, []) for name, kind in states],
    )
    yield helper.make_node("Loop", [one, start, start, text], [made, f"{text}_last"], name=made, body=body)


def _declare(model: ModelProto, made: list[str], types: Mapping[str, TypeProto]) -> None:
    """Declare the types of what is left: ONNX Runtime may not see them in an If."""
    inner = set(made) - {value.name for value in model.graph.output}
    kept = [value for value in model.graph.value_info if value.name not in inner]
    del model.graph.value_info[:]
    model.graph.value_info.extend(kept)
    for name in sorted(inner):
        model.graph.value_info.add(name=name, type=types[name])
