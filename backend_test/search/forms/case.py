# SPDX-License-Identifier: Apache-2.0
"""A model with inputs and the right results, and what all forms ask of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, TypeProto, ValueInfoProto

from onnx_multi_backend.models.graph_walk import subgraphs

#: The first version of the format with initializers that are no inputs.
_FREE = 4


class Case(NamedTuple):
    """A model, what it is given, and what is right.

    Attributes
    ----------
    model : ModelProto
    feeds : dict of str to value
        By name, in the order of the model's inputs.
    results : list of values, or None
        In the order of the outputs; None where ONNX's evaluator has to tell.
    """

    model: ModelProto
    feeds: dict[str, Any]
    results: list[Any] | None


def copied(model: ModelProto) -> ModelProto:
    """The model without the types that somebody noted, in a format that holds initializers of its own."""
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.value_info[:]
    made.ir_version = max(made.ir_version, _FREE)
    return made


def opset(model: ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def tensor(kind: TypeProto) -> TypeProto.Tensor | None:
    """The tensor in sequences and optionals."""
    while (what := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, str(what)).elem_type
    return kind.tensor_type if kind.HasField("tensor_type") else None


def holds_graphs(model: ModelProto) -> bool:
    return any(next(subgraphs(node), None) is not None for node in model.graph.node)


def defaults(model: ModelProto) -> set[str]:
    """The names that have a value without being given one."""
    return {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}


def renamed(value: ValueInfoProto, name: str) -> ValueInfoProto:
    made = ValueInfoProto()
    made.CopyFrom(value)
    made.name = name
    return made


def without_sizes(value: ValueInfoProto, rank: int) -> None:
    """Leave a tensor's rank alone in its type."""
    shape = value.type.tensor_type.shape
    shape.Clear()
    for _ in range(rank):
        shape.dim.add()


def is_array(value: Any) -> bool:
    """Whether it is a tensor of a type that NumPy has, or of strings."""
    return isinstance(value, np.ndarray) and (value.dtype != object or all(isinstance(x, str) for x in value.ravel()))
