# SPDX-License-Identifier: Apache-2.0
"""Nodes of a whole model that OpenVINO's built-in provider takes and fails to compile, put in an If each, as `left_to_cpu` does.

What the If asks is true, which only the run tells: a loop that the provider leaves passes it on. The size of a tensor would not do, since
the provider would take that node too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.names import CAST, LEFT
from onnx_multi_backend.adapt.single_node import scope_of
from onnx_multi_backend.engines.ort.openvino_ep.branched import branched
from onnx_multi_backend.engines.ort.openvino_ep.texts import unused_prefix
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import nodes_in, put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

#: Which of a model's nodes are left, by their position in the main graph, given the types that are known.
Choose = Callable[[ModelProto, Mapping[str, TypeProto]], Collection[int]]


def with_nodes_left(
    payload: Payload, choose: Choose, what: str, reason: str, *, hides_bodies: bool = False
) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with some nodes left; nothing is changed where there are none, or the type of what one makes is not known.

    Parameters
    ----------
    payload : Payload
    choose : callable
        Which nodes, of the model without functions.
    what, reason : str
        Of the adaptation; their number is put behind `what`.
    hides_bodies : bool
        Whether what is put in a body does not count as a node of the model either: it may be all that a provider takes.
    """
    model = payload.adapted.proto
    if expands_too_far(model):
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    types = scope_of(infer(copy)).types
    found = [i for i in choose(copy, types) if LEFT not in copy.graph.node[i].name]
    made = [name for i in found for name in copy.graph.node[i].output if name]
    if not found or not all(name in types for name in made):
        return payload, ()
    prefix = unused_prefix(copy, f"{CAST}_{LEFT}_node")
    true = f"{prefix}_true"
    nodes = list(_true_at_run_time(true))
    count = len(nodes)
    for i, node in enumerate(copy.graph.node):
        if i in found:
            node = branched([node], {name: types[name] for name in node.output if name}, true, f"{prefix}{i}")
        nodes.append(node)
    put_in = nodes_in(nodes[:count]) if hides_bodies else nodes[:count]
    added = {*(node.name for node in put_in), *(f"{prefix}{i}" for i in found)}
    put_back(copy.graph, nodes)
    _declare(copy, made, types)
    change = Adaptation("left_to_cpu", "", f"{what} ({len(found)})", reason)
    return payload.changed(copy, change, inserted=added), (change,)


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
