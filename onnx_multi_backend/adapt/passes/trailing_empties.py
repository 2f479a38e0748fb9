# SPDX-License-Identifier: Apache-2.0
"""Pass: leave out optional inputs and outputs that a node names "" at the end, and name the other outputs, which means the same.

Source: "Optional Inputs and Outputs" in https://onnx.ai/onnx/repo-docs/IR.html. Engines look at the number of inputs
where they should look at the name: ONNX Runtime ends the process (LayerNormalization, DFT) or fails when it runs. An output
that cannot be left out (of Loop, Scan, If and Split, where each has its place) and is named "" ends its process too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx
from onnx import ModelProto, NodeProto
from onnx.defs import OpSchema

from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, nodes_in, operator_name
from onnx_multi_backend.models.inlining import inlined

#: Operators with as many outputs as a graph of theirs has, or as they are told.
_PLACED = frozenset({"If", "Loop", "Scan", "Split"})

#: Operators whose trailing empty inputs every engine takes for what they are (measured). PyTorch writes these so: the model
#: goes to the engine as it is.
_RIGHT = frozenset({"Clip", "Pad"})

_OPTIONAL = OpSchema.FormalParameterOption.Optional


def trailing_empties(work: Work) -> None:
    """Leave them out, in the main graph, in subgraphs and in local functions.

    A call of a local function that omits an argument leaves the nodes of its body with an input named "". The functions of
    such a model are inlined first, if that makes a difference.
    """
    model = work.model
    if not model.functions and not any(_may_be_meant(node) for node in work.contents.computing):
        return
    if model.functions and _omits_an_argument(model):
        flat = inlined(model)
        if not flat.functions and next(_meant(flat), None) is not None:
            work.inline(flat, "a call of it omits an argument")
    if next(_meant(work.model), None) is None:
        return
    marker = _marker(work.model)
    for count, (node, inputs, outputs) in enumerate(_meant(work.edit())):
        said = _words(len(node.input) - inputs, "input") + _words(len(node.output) - outputs, "output")
        del node.input[inputs:], node.output[outputs:]
        said = [f"{' and '.join(said)} left out"] if said else []
        if unnamed := _unnamed(node):
            for i in unnamed:
                node.output[i] = f"{marker}{count}_{i}"
            said.append(f'{len(unnamed)} output{"s" if len(unnamed) > 1 else ""} named "" given a name')
        where = f"{operator_name(node)} {node.name!r}" if node.name else operator_name(node)
        reason = 'engines count an input or output that is named "" as given'
        work.changes.append(Adaptation("trailing_empties", where, ", ".join(said), reason))


def _words(count: int, what: str) -> list[str]:
    return [f'{count} trailing {what}{"s" if count > 1 else ""} named ""'] if count else []


def _meant(model: ModelProto) -> Iterator[tuple[NodeProto, int, int]]:
    """The nodes with something to leave out, and how many inputs and outputs each keeps."""
    main = all_nodes(model) if not model.functions else nodes_in(model.graph.node)
    yield from _of(main, opset_versions(model))
    for function in model.functions:
        yield from _of(nodes_in(function.node), {canonical(o.domain): o.version for o in function.opset_import})


def _may_be_meant(node: NodeProto) -> bool:
    inputs = node.input
    return ((inputs and not inputs[-1]) or "" in node.output[:]) and node.op_type not in _RIGHT


def _of(nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> Iterator[tuple[NodeProto, int, int]]:
    for node in nodes:
        inputs, outputs = node.input, node.output
        if _may_be_meant(node):
            kept = kept_inputs(node, opsets), kept_outputs(node, opsets)
            if kept != (len(inputs), len(outputs)) or _unnamed(node):
                yield node, *kept


def _unnamed(node: NodeProto) -> list[int]:
    """The outputs that have their place among others, and no name."""
    if node.op_type not in _PLACED or canonical(node.domain):
        return []
    return [i for i, name in enumerate(node.output) if not name]


def _marker(model: ModelProto) -> str:
    """What no value's name begins with."""
    marker = "omb_unused"
    while any(name.startswith(marker) for node in all_nodes(model) for name in node.output):
        marker += "_"
    return marker


def kept_inputs(node: NodeProto, opsets: Mapping[str, int]) -> int:
    """How many inputs a node keeps without the optional ones at its end that are named ""."""
    schema = _schema(node, opsets)
    return len(node.input) if schema is None else _kept(node.input, schema.inputs, schema.min_input)


def kept_outputs(node: NodeProto, opsets: Mapping[str, int]) -> int:
    """The same for outputs."""
    schema = _schema(node, opsets)
    return len(node.output) if schema is None else _kept(node.output, schema.outputs, schema.min_output)


def _kept(names: Iterable[str], formal: Iterable[OpSchema.FormalParameter], least: int) -> int:
    given, declared = list(names), list(formal)
    count = len(given)
    while count > least and count <= len(declared) and not given[count - 1] and declared[count - 1].option == _OPTIONAL:
        count -= 1
    return count


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> OpSchema | None:
    domain = canonical(node.domain)
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return None


def _omits_an_argument(model: ModelProto) -> bool:
    """Whether a call of a local function gives it less than it takes."""
    takes = {(canonical(f.domain), f.name, f.overload): len(f.input) for f in model.functions}
    for node in all_nodes(model):
        count = takes.get((canonical(node.domain), node.op_type, node.overload))
        if count is not None and (len(node.input) < count or "" in node.input):
            return True
    return False
