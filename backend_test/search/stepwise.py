# SPDX-License-Identifier: Apache-2.0
"""A reference that takes a graph node by node: one node that ONNX's evaluator does not run silences it for the others no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from backend_test.search import engines, evaluator, kernels
from backend_test.search.answers import REFUSED, RESULT, Answer
from backend_test.search.graphs.values import onnx_kind
from backend_test.search.parts import names_read


def stepwise(data: bytes, feeds: Sequence[Mapping[str, Any]], note: engines.Note) -> Answer:
    """ONNX's evaluator for each node that it runs, and ONNX Runtime without optimizations for the others.

    Parameters
    ----------
    data : bytes
        A model; its functions are inlined.
    feeds : sequence of mapping
    note : callable
        See `engines.Note`.
    """
    model = ModelProto.FromString(data)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    note("run")
    typed = onnx.shape_inference.infer_shapes(model).graph
    kinds = {value.name: value for value in (*typed.value_info, *typed.output)}
    answer = Answer(RESULT)
    for fed in feeds:
        held: dict[str, Any] = dict(fed)
        for tensor in model.graph.initializer:
            held[tensor.name] = numpy_helper.to_array(tensor)
        for node in model.graph.node:
            outputs = _run(model, node, held, kinds)
            if outputs is None:
                return Answer(REFUSED, error=f"nobody runs {node.op_type} alone")
            held.update(zip(filter(None, node.output), outputs, strict=True))
        answer.runs.append([held[output.name] for output in model.graph.output])
    return answer


def _run(
    model: ModelProto, node: NodeProto, held: Mapping[str, Any], kinds: Mapping[str, ValueInfoProto]
) -> list[Any] | None:
    """What a node makes; None where nobody runs it."""
    read = sorted(names_read([node]))
    fed = {name: held[name] for name in read}
    alone = ModelProto()
    alone.CopyFrom(model)
    tensors = all(isinstance(value, np.ndarray) for value in fed.values())
    inputs = [
        helper.make_tensor_value_info(name, onnx_kind(value.dtype), value.shape)
        if isinstance(value, np.ndarray)
        else ValueInfoProto(name=name)
        for name, value in fed.items()
    ]
    outputs = [kinds.get(name, ValueInfoProto(name=name)) for name in node.output if name]
    alone.graph.CopyFrom(onnx.GraphProto(name=model.graph.name, node=[node], input=inputs, output=outputs))
    asked = [engines.reference] if not evaluator.errs(alone) else []
    if tensors and not kernels.errs(alone):
        asked.append(engines.ort_unoptimized)
    for engine in asked:
        answer = engine(alone.SerializeToString(), [fed])
        if answer.kind == RESULT:
            return answer.runs[0]
    return None
