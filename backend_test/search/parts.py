# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph: some of its nodes, with what the others gave them as inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, helper
from onnx.reference import ReferenceEvaluator

from backend_test.search import engines
from backend_test.search.answers import RESULT
from backend_test.search.graphs.values import onnx_kind


def inner_values(model: ModelProto, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What every value of the main graph holds in each run: tensors only."""
    opened = ModelProto()
    opened.CopyFrom(model)
    try:
        typed = onnx.shape_inference.infer_shapes(model).graph
        kinds = {i.name: i for i in typed.value_info}
    except (onnx.shape_inference.InferenceError, RuntimeError):
        kinds = {}
    declared = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name in kinds and name not in declared:
                opened.graph.output.append(kinds[name])
    answer = engines.ort_unoptimized(opened.SerializeToString(), feeds)
    if answer.kind == RESULT:
        names = [o.name for o in opened.graph.output]
        found = [dict(zip(names, run, strict=True)) for run in answer.runs]
    else:
        evaluator = ReferenceEvaluator(model)
        found = [dict(evaluator.run(None, dict(fed), intermediate=True)) for fed in feeds]
    return [{**values, **fed} for values, fed in zip(found, feeds, strict=True)]


def part(
    model: ModelProto, kept: Collection[int], values: Sequence[Mapping[str, Any]]
) -> tuple[ModelProto, list[dict[str, Any]]] | None:
    """The model of some nodes, and its inputs; None where a value between is unknown or no tensor.

    Parameters
    ----------
    kept : collection of int
        The nodes by their position; constants they read come along.
    values : sequence of mapping
        Of `inner_values`.
    """
    graph = model.graph
    nodes = [n for i, n in enumerate(graph.node) if i in kept]
    made = {name for n in nodes for name in n.output if name}
    read = names_read(nodes) - made
    constants = [n for n in graph.node if n.op_type == "Constant" and set(n.output) & read]
    nodes = constants + nodes
    read -= {name for n in constants for name in n.output}
    initializers = [t for t in graph.initializer if t.name in read]
    read -= {t.name for t in initializers}
    own = {i.name: i for i in graph.input}
    inputs = []
    for name in sorted(read):
        if name in own:
            inputs.append(own[name])
            continue
        found = [v.get(name) for v in values]
        if not all(isinstance(a, np.ndarray) for a in found):
            return None
        shapes = [a.shape for a in found]  # type: ignore[union-attr]
        if len({len(s) for s in shapes}) > 1:
            return None
        dims = [s[0] if len(set(s)) == 1 else None for s in zip(*shapes, strict=True)]
        kind = onnx_kind(found[0].dtype)  # type: ignore[union-attr]
        inputs.append(helper.make_tensor_value_info(name, kind, dims))
    used = names_read(nodes)
    declared = {o.name: o for o in graph.output}
    outputs = []
    for node in nodes[len(constants) :]:
        for name in node.output:
            if not name or (name in used and name not in declared):
                continue
            if name in declared:
                outputs.append(declared[name])
                continue
            found = [v.get(name) for v in values]
            if not all(isinstance(a, np.ndarray) for a in found):
                return None
            kind = onnx_kind(found[0].dtype)  # type: ignore[union-attr]
            outputs.append(helper.make_tensor_value_info(name, kind, [None] * found[0].ndim))  # type: ignore[union-attr]
    if not outputs:
        return None
    smaller = ModelProto()
    smaller.CopyFrom(model)
    smaller.graph.CopyFrom(
        GraphProto(name=graph.name, node=nodes, initializer=initializers, input=inputs, output=outputs)
    )
    called = {n.op_type for n in nodes if n.domain}
    functions = [f for f in model.functions if f.name in called]
    del smaller.functions[:]
    smaller.functions.extend(functions)
    return smaller, [{i.name: v[i.name] for i in inputs} for v in values]


def names_read(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """The names that nodes read, those that their subgraphs read from outside included."""
    names: set[str] = set()
    for node in nodes:
        names.update(name for name in node.input if name)
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
                inside |= {name for n in graph.node for name in n.output}
                names |= (names_read(graph.node) | {o.name for o in graph.output}) - inside
    return names
