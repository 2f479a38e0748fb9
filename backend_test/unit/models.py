# SPDX-License-Identifier: Apache-2.0
"""Tiny models for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
STRING = TensorProto.STRING

#: Versions that every engine of the tests reads as they are.
OPSET = 20
IR_VERSION = 10


def tensor(name: str, shape: Sequence[int | str | None] | None = ("N", 3), elem_type: int = FLOAT) -> ValueInfoProto:
    """A graph input or output."""
    return helper.make_tensor_value_info(name, elem_type, shape)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A node that bears its first output's name, so that messages can be held to it."""
    attributes.setdefault("name", f"the_{op_type}")
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    *,
    initializers: dict[str, np.ndarray] | None = None,
    opsets: dict[str, int] | None = None,
    ir_version: int = IR_VERSION,
    **fields: Any,
) -> ModelProto:
    """A model; nothing is checked, so that it may be wrong."""
    weights = [numpy_helper.from_array(np.asarray(a), name) for name, a in (initializers or {}).items()]
    graph = helper.make_graph(list(nodes), "tiny", list(inputs), list(outputs), weights)
    imports = [helper.make_opsetid(domain, version) for domain, version in {"": OPSET, **(opsets or {})}.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, **fields)


def one_node(
    op_type: str,
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    *,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    **attributes: Any,
) -> ModelProto:
    """A model of one node of the default domain."""
    made = node(op_type, [i.name for i in inputs], [o.name for o in outputs], **attributes)
    return model([made], inputs, outputs, opsets={"": opset}, ir_version=ir_version)


def relu(shape: Sequence[int | str | None] = ("N", 3)) -> ModelProto:
    """y = max(x, 0)."""
    return one_node("Relu", [tensor("x", shape)], [tensor("y", shape)])


def subtract(shape: Sequence[int | str | None] = ("N", 3)) -> ModelProto:
    """y = a - b, which tells the inputs apart."""
    return one_node("Sub", [tensor("a", shape), tensor("b", shape)], [tensor("y", shape)])


def linear(rows: int = 3, columns: int = 2) -> ModelProto:
    """y = x @ w + b with w[i, j] = i + 10 j and b = -1."""
    weights = {
        "w": np.arange(rows, dtype=np.float32)[:, None] + 10 * np.arange(columns, dtype=np.float32),
        "b": -np.ones(columns, np.float32),
    }
    nodes = [node("MatMul", ["x", "w"], ["xw"]), node("Add", ["xw", "b"], ["y"])]
    return model(nodes, [tensor("x", ["N", rows])], [tensor("y", ["N", columns])], initializers=weights)
