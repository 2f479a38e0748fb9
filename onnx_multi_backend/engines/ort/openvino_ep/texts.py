# SPDX-License-Identifier: Apache-2.0
"""Texts that Ifs, Loops and Scans are given, so that OpenVINO's built-in provider leaves them to the CPU provider; see `left_to_cpu`."""

from __future__ import annotations

from collections.abc import Callable

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.single_node import without_unread
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import all_nodes, put_back, subgraphs

_TEXT = TensorProto(name="text", data_type=TensorProto.STRING, dims=[1], string_data=[b""])

#: Whether a node is to be left; asked of an If, Loop or Scan once those in it have their texts.
IsMeant = Callable[[NodeProto], bool]


def with_texts(
    payload: Payload, model: ModelProto, is_meant: IsMeant, what: str, reason: str
) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with a model in which each such If has a text for another output, each such Loop or Scan one for another state.

    Parameters
    ----------
    model : onnx.ModelProto
        The payload's, or made from it; it stays as it is.
    what, reason : str
        Of the adaptation.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    count = _add(copy.graph, is_meant, unused_prefix(copy, "omb_text"), 0)
    change = Adaptation("left_to_cpu", what, f"a state or output of text added ({count})", reason)
    return payload.changed(copy, change, inserted=set()), (change,)


def _add(graph: GraphProto, is_meant: IsMeant, prefix: str, count: int) -> int:
    """Do so in a graph and its subgraphs; how many there are with those before."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            count = _add(inner, is_meant, prefix, count)
        if is_meant(node):
            count += 1
            if node.op_type == "If":
                make_text(node, f"{prefix}{count}")
            else:
                graph.initializer.append(_carry_text(node, f"{prefix}{count}"))
        nodes.append(node)
    put_back(graph, nodes)
    return count


def make_text(node: NodeProto, name: str) -> None:
    """Have an If make a text, and nothing that is not needed: the provider takes nodes that read nothing from outside, and fails to run them."""
    for attribute in node.attribute:
        without_unread(attribute.g)
        text = f"{name}_{attribute.name}"
        attribute.g.node.append(helper.make_node("Constant", [], [text], value=_TEXT))
        attribute.g.output.append(helper.make_tensor_value_info(text, TensorProto.STRING, [1]))
    node.output.append(name)


def _carry_text(node: NodeProto, name: str) -> TensorProto:
    """Give a Loop or Scan a text for another state; the text. A Constant would count as a node: the provider takes more of a model of four nodes."""
    body = next(a.g for a in node.attribute if a.name == "body")
    before, results_before = (2, 1) if node.op_type == "Loop" else (0, 0)  # a Loop's step and condition
    states = len(body.input) - before - sum(a.i for a in node.attribute if a.name == "num_scan_inputs")
    given, read = list(body.input), list(node.input)
    given.insert(before + states, helper.make_tensor_value_info(f"{name}_in", TensorProto.STRING, [1]))
    read.insert(before + states, name)
    body.node.append(helper.make_node("Identity", [f"{name}_in"], [f"{name}_out"]))
    results, made = list(body.output), list(node.output)
    results.insert(results_before + states, helper.make_tensor_value_info(f"{name}_out", TensorProto.STRING, [1]))
    made += [f"{name}_unread{i}" for i in range(len(made), states)]
    made.insert(states, f"{name}_last")
    del body.input[:], body.output[:], node.input[:], node.output[:]
    body.input.extend(given)
    body.output.extend(results)
    node.input.extend(read)
    node.output.extend(made)
    return TensorProto(name=name, data_type=_TEXT.data_type, dims=_TEXT.dims, string_data=_TEXT.string_data)


def unused_prefix(model: ModelProto, prefix: str) -> str:
    """A prefix that no name of a node or value has, made of this one."""
    names = {name for node in all_nodes(model) for name in (node.name, *node.output)}
    for graph in inner_first(model.graph):
        names.update(value.name for value in graph.input)
        names.update(tensor.name for tensor in graph.initializer)
    texts = [name for name in names if isinstance(name, str)]  # what is not UTF-8 comes as bytes
    while any(name.startswith(prefix) for name in texts):
        prefix += "_"
    return prefix
