# SPDX-License-Identifier: Apache-2.0
"""Models that onnx, or an engine that is shown their nodes one by one, may crash on or never finish.

An engine answers such a model with a result or an error, and that is passed on. Nothing else is asked about it: it is not
rewritten, its types are not inferred, and no node is tried by itself.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from onnx import AttributeProto, ModelProto, NodeProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import (
    all_nodes,
    canonical,
    may_hold_graphs,
    nodes_in,
    operator_name,
    subgraphs,
)

#: Domain, name and overload of an operator.
_Key = tuple[str, str, str]

#: No tensor has as many axes.
MOST_AXES = 64
#: The elements of a tensor that memory may be taken for before a model runs: 4 GiB in float32.
MOST_ELEMENTS = 1 << 30
_INT32 = 2**31

_AXIS = (-MOST_AXES, MOST_AXES)
_COUNT = (1, _INT32)
_SIZE = (0, _INT32)

#: The values that an attribute may have, the end excluded: half-open ranges that no valid model leaves.
_RANGES: Mapping[str, tuple[int, int]] = {
    "axes": _AXIS,
    "axis": _AXIS,
    "batch_axis": (0, MOST_AXES),
    "batch_dims": (0, MOST_AXES),
    "block_size": _SIZE,
    "blocksize": _COUNT,
    "dilations": _COUNT,
    "group": _COUNT,
    "hidden_size": _COUNT,
    "kernel_shape": _COUNT,
    "kv_num_heads": _COUNT,
    "num_groups": _COUNT,
    "num_heads": _SIZE,
    "num_outputs": _COUNT,
    "num_scan_inputs": _COUNT,
    "perm": (0, MOST_AXES),
    "q_num_heads": _COUNT,
    "strides": _COUNT,
    "time_axis": (0, MOST_AXES),
}
_OTHERS = (-_INT32, _INT32)

_INT, _INTS, _STRING = AttributeProto.INT, AttributeProto.INTS, AttributeProto.STRING

#: What the terms of Einsum's equation are made of, beside an ellipsis.
_LETTERS = (string.ascii_letters + " ").encode()

#: Values and positions, for which every integer is a good one.
_FREE = frozenset({"end", "ends", "pool_int64s", "seed", "start", "starts", "value_int", "value_ints"})

#: Nodes that local functions may come to once each call is replaced by its body.
_MOST_NODES = 100_000

#: How many times as many nodes as the model holds local functions may come to, where they come to `_MANY_NODES`. Large exported models of
#: PyTorch, with a function for each layer and one for each operator, come to some 60 times.
_MOST_TIMES, _MANY_NODES = 100, 2_000

#: How often the nodes of graphs in graphs may be looked at again: once for each graph around them, beyond the first.
_MOST_REPEATS = 3_000

#: The same where nothing is looked at, and the engine alone has to finish.
_FAR_TOO_MANY_REPEATS = 100_000


def implausible(nodes: Iterable[NodeProto]) -> str | None:
    """What no valid model has: an attribute whose value is beyond its range; None: there is nothing of the kind."""
    return next(_found(nodes), None)


def expands_too_far(model: ModelProto) -> bool:
    """Whether the local functions come to more nodes than are worth looking at: they double with each call inside another."""
    return bool(model.functions) and expanded(model) > _MOST_NODES


def multiplies(model: ModelProto) -> bool:
    """Whether the local functions come to far more nodes than the model holds: an engine that inlines them takes very long."""
    if not model.functions:
        return False
    held = sum(1 for node in all_nodes(model))
    return expanded(model) > max(_MANY_NODES, _MOST_TIMES * held)


def is_endless(contents: Contents) -> bool:
    """Whether an engine may never finish a model: its functions, or graphs in graphs, come to far more nodes than it holds."""
    model = contents.model
    return expands_too_far(model) or multiplies(model) or nests_too_far(contents, _FAR_TOO_MANY_REPEATS)


def nests_too_far(contents: Contents, most: int = _MOST_REPEATS) -> bool:
    """Whether graphs in graphs come to more nodes than are worth looking at: each is a part of all the nodes around it.

    A node that holds graphs is shown to an engine with all that they hold, so a node that is three graphs deep is compiled
    three times.
    """
    if not contents.holding:
        return False
    model = contents.model
    repeats = 0
    waiting = [(nodes, 0) for nodes in (model.graph.node, *(function.node for function in model.functions))]
    while waiting and repeats <= most:
        nodes, around = waiting.pop()
        repeats += len(nodes) * max(around - 1, 0)
        holding = (node for node in nodes if node.domain or may_hold_graphs(node.op_type))
        waiting += [(inner.node, around + 1) for node in holding for inner in subgraphs(node)]
    return repeats > most


def expanded(model: ModelProto) -> int:
    """How many nodes there are once each call of a local function is replaced by its body.

    The checker has refused functions that call themselves.
    """
    calls = {(canonical(f.domain), f.name, f.overload): Counter(map(_key, nodes_in(f.node))) for f in model.functions}
    counts: dict[_Key, int] = {}

    def total(nodes: Counter[_Key]) -> int:
        return sum(times * counts.get(key, 1) for key, times in nodes.items())

    while waiting := calls.keys() - counts.keys():
        ready = [key for key in waiting if not calls[key].keys() & waiting]
        if not ready:
            break
        counts.update((key, total(calls[key])) for key in ready)
    return total(Counter(map(_key, nodes_in(model.graph.node))))


def _key(node: NodeProto) -> _Key:
    return canonical(node.domain), node.op_type, node.overload


def _found(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        if node.domain and canonical(node.domain):
            continue
        for attribute in node.attribute[:]:  # a list is walked in half the time
            kind = attribute.type
            if kind == _INT:
                least = most = attribute.i
                if attribute.name == "num_outputs" and least < len(node.output):  # onnx 1.23 reads beyond a list
                    yield f"{operator_name(node)} (output {next(iter(node.output), '')!r}) has more outputs than num_outputs"
            elif kind == _INTS and (values := attribute.ints):
                least, most = min(values), max(values)
            else:
                if kind == _STRING and attribute.name == "equation" and not _is_equation(attribute.s):
                    yield f"{operator_name(node)} (output {next(iter(node.output), '')!r}) has an equation of other signs than letters"
                continue
            if least > 0 and most < MOST_AXES:  # in each of the ranges
                continue
            low, end = _RANGES.get(attribute.name, _OTHERS)
            if (least < low or most >= end) and attribute.name not in _FREE:
                yield f"{operator_name(node)} (output {next(iter(node.output), '')!r}) has {attribute.name} out of range"


def _is_equation(text: bytes) -> bool:
    """Whether onnx finishes reading an equation: it never gets beyond another sign, or a lone point."""
    terms = text.replace(b"->", b",", 1).split(b",")
    return all(term.count(b"...") < 2 and not term.replace(b"...", b"").translate(None, _LETTERS) for term in terms)
