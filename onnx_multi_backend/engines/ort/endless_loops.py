# SPDX-License-Identifier: Apache-2.0
"""Loops that end the process of OpenVINO's execution provider (seen with 1.24.1): their condition is a constant.

So PyTorch writes every ``for``. The provider looks for the node that makes the condition, which ONNX Runtime has folded away. It looks only
at a Loop that carries values of known rank and reads values of the outer graph, which it cannot do either.
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto

from onnx_multi_backend.models.graph_walk import nodes_in


def constant_condition(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Loop whose body's condition comes from constants alone, and whose other nodes read the outer graph."""
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    if body is None or not body.output or not all(v.type.tensor_type.HasField("shape") for v in body.input[2:]):
        return None
    makers = {name: inner for inner in body.node for name in inner.output}
    known = {node.input[1]} if len(constants) > 1 and constants[1] is not None else set()
    made_of = _made_of(body.output[0].name, makers)
    own = made_of & makers.keys()
    if not own or not made_of - own <= known or not _reads_outer(body, own):
        return None
    return "a constant condition, in a body that reads the outer graph, ends the process"


def _made_of(name: str, makers: dict[str, NodeProto]) -> set[str]:
    """A value and all that it is computed from."""
    waiting, found = [name], set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(makers[name].input if name in makers else ())
    return found


def _reads_outer(body: GraphProto, but: set[str]) -> bool:
    """Whether a node reads what the body does not have, apart from the nodes that make these values."""
    inner = {name for node in nodes_in(body.node) for name in node.output}
    inner |= {value.name for value in body.input} | {tensor.name for tensor in body.initializer} | {""}
    others = [node for node in body.node if but.isdisjoint(node.output)]
    return any(name not in inner for node in nodes_in(others) for name in node.input)
