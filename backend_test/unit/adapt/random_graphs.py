# SPDX-License-Identifier: Apache-2.0
"""Random models for hypothesis: elementwise operators in the main graph, in subgraphs and in local functions.

They are `backend_test.search.graphs` of few operators and one element type, drawn from hypothesis' own random numbers, so that a
failing one shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, TensorProto, helper

from backend_test.search.graphs import Plan, random_graph

FLOATS = ("float32", "float16", "float64")
TYPES = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

OPERATORS = tuple(
    "Abs Neg Identity Sign Add Sub Mul Max Min Relu Sigmoid Floor Exp Softplus Tanh Elu Celu Ceil HardSigmoid ThresholdedRelu".split()
)

Draw = Callable[[Any], Any]


class Made(NamedTuple):
    """A random model, and inputs for it."""

    model: ModelProto
    arrays: list[np.ndarray]
    dtype: str


@st.composite
def random_models(draw: Draw, types: Sequence[str] = TYPES, *, finite: bool = False) -> Made:
    """A model of a few nodes, in any opset that onnx knows from 7 on, and its inputs."""
    dtype = draw(st.sampled_from(types))
    plan = Plan(
        operators=OPERATORS,
        nodes=(1, 2, 3, 4),
        structures=0.35,
        kinds=(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),),
        profiles=("tame-finite",) if finite else ("tame",),
        dynamic=False,
        simple=True,
    )
    made = random_graph(draw(st.randoms(use_true_random=False)), plan)
    return Made(made.model, list(made.feeds[0].values()), dtype)


def with_type(model: ModelProto, old: int, new: int) -> ModelProto:
    """The same model on another element type."""
    copy = ModelProto()
    copy.CopyFrom(model)

    def tensor(held: TensorProto) -> None:
        from onnx import numpy_helper

        if held.data_type == old:
            array = numpy_helper.to_array(held).astype(helper.tensor_dtype_to_np_dtype(new))
            held.CopyFrom(numpy_helper.from_array(array, held.name))

    def change(graph: GraphProto) -> None:
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
        for held in graph.initializer:
            tensor(held)
        nodes(graph.node)

    def nodes(found: Any) -> None:
        for node in found:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    change(attribute.g)
                if attribute.HasField("t"):
                    tensor(attribute.t)

    change(copy.graph)
    for function in copy.functions:
        nodes(function.node)
    return copy
