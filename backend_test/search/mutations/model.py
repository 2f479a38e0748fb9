# SPDX-License-Identifier: Apache-2.0
"""Mutations of what stands around the graph: versions, functions, texts."""

from __future__ import annotations

import random

from onnx import ModelProto, helper


def opset(model: ModelProto, rng: random.Random) -> str:
    """An opset import gets another version, another domain, comes twice, or goes."""
    if not model.opset_import:
        return ""
    entry = rng.choice(list(model.opset_import))
    how = rng.randrange(6)
    if how == 0:
        model.opset_import.remove(entry)
        return f"opset import of {entry.domain!r} removed"
    if how == 1:
        model.opset_import.add(domain=entry.domain, version=rng.choice((1, 7, 13, 99)))
        return f"opset import of {entry.domain!r} twice"
    if how == 2:
        model.opset_import.add(domain=rng.choice(("ai.onnx.ml", "com.microsoft", "nothing", "ai.onnx")), version=1)
        return "one opset import more"
    before = entry.version
    entry.version = rng.choice((0, -1, *range(1, 30), 29, 1000, 2**31, 2**63 - 1))
    return f"opset {entry.domain!r} {before} -> {entry.version}"


def ir_version(model: ModelProto, rng: random.Random) -> str:
    """The IR version changes."""
    before = model.ir_version
    model.ir_version = rng.choice((0, 1, 2, 3, 4, 6, 9, 13, 14, 15, 99, 2**31, -1))
    return f"IR {before} -> {model.ir_version}"


def texts(model: ModelProto, rng: random.Random) -> str:
    """Names and texts are odd, long or empty."""
    text = rng.choice(("", "\x00", "a" * 100_000, "\x1b[31m", "../x"))
    where = rng.choice(("graph.name", "producer_name", "doc_string", "metadata", "domain", "node"))
    if where == "graph.name":
        model.graph.name = text
    elif where == "metadata":
        model.metadata_props.add(key=text, value=text)
        model.metadata_props.add(key=text, value="again")
    elif where == "node" and model.graph.node:
        for node in model.graph.node:
            node.name = text[:100]
    elif where != "node":
        setattr(model, where, text)
    return f"{where} is {text[:8]!r}"


def function(model: ModelProto, rng: random.Random) -> str:
    """A function comes twice, calls itself, shadows an operator, or calls another twice that does so too."""
    how = rng.randrange(4)
    version = next((o.version for o in model.opset_import if not o.domain), 17)
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("fuzz", 1)]
    if how == 0 and model.functions:
        model.functions.add().CopyFrom(model.functions[0])
        return "a function twice"
    if not model.graph.node:
        return ""
    node = rng.choice(list(model.graph.node))
    if how == 1:
        body = [helper.make_node("Self", ["a"], ["b"], domain="fuzz")]
        model.functions.append(helper.make_function("fuzz", "Self", ["a"], ["b"], body, opsets))
        told = "Self"
    elif how == 2:
        body = [helper.make_node("Neg", ["a"], ["b"])]
        model.functions.append(helper.make_function("", node.op_type, ["a"], ["b"], body, opsets))
        return f"a function called {node.op_type}"
    else:
        depth = rng.choice((3, 3, 8, 8, 12, 25))
        for level in range(depth):
            inner = ("F" + str(level - 1), "fuzz") if level else ("Neg", "")
            body = [
                helper.make_node(inner[0], ["a"], ["t"], domain=inner[1]),
                helper.make_node(inner[0], ["t"], ["b"], domain=inner[1]),
            ]
            model.functions.append(helper.make_function("fuzz", f"F{level}", ["a"], ["b"], body, opsets))
        told = f"F{depth - 1}"
    model.opset_import.add(domain="fuzz", version=1)
    if not node.output or not node.output[0]:
        return ""
    name = node.output[0]
    node.output[0] = name + "_before"
    model.graph.node.append(helper.make_node(told, [name + "_before"], [name], domain="fuzz"))
    nodes = list(model.graph.node)
    place = nodes.index(node) + 1
    nodes.insert(place, nodes.pop())
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return f"{name!r} goes through {told}"


MUTATIONS = (opset, opset, ir_version, texts, function)
