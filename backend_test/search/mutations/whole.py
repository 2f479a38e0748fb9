# SPDX-License-Identifier: Apache-2.0
"""Mutations of the whole graph, and of the bytes of a serialized model."""

from __future__ import annotations

import random

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper


def nest(model: ModelProto, rng: random.Random) -> str:
    """The nodes move into the branches of nested Ifs, or into the body of a Loop."""
    graph = model.graph
    if not graph.node or not graph.output or any(not o.type.HasField("tensor_type") for o in graph.output):
        return ""
    depth = rng.choice((1, 1, 2, 5, 40))
    inner = GraphProto(name="inner", node=graph.node, output=graph.output, value_info=graph.value_info)
    yes = numpy_helper.from_array(np.array(bool(rng.randrange(2))), "fuzz_condition")
    for level in range(depth):
        names = [f"{o.name}_{level}" for o in inner.output]
        outputs = []
        for name, old in zip(names, inner.output, strict=True):
            made = type(old)()
            made.CopyFrom(old)
            made.name = name
            outputs.append(made)
        node = helper.make_node("If", ["fuzz_condition"], names, then_branch=inner, else_branch=inner)
        inner = helper.make_graph([node], f"level{level}", [], outputs)
        if inner.ByteSize() > 2_000_000:
            break
    outer = inner.node[0]
    del graph.node[:]
    graph.node.append(outer)
    del graph.value_info[:]
    for name, output in zip(outer.output, graph.output, strict=True):
        graph.node.append(helper.make_node("Identity", [name], [output.name]))
    graph.initializer.append(yes)
    return f"inside {depth} Ifs"


def loop(model: ModelProto, rng: random.Random) -> str:
    """One node's result goes through a Loop of an extreme number of steps that stops soon, or at once."""
    node = next((n for n in model.graph.node if n.output and n.output[0]), None)
    if node is None:
        return ""
    name = node.output[0]
    node.output[0] = name + "_start"
    steps = rng.choice((0, 1, 3, -1, 2**31, 2**63 - 1))
    body = helper.make_graph(
        [helper.make_node("Identity", ["fuzz_no"], ["on"]), helper.make_node("Identity", ["s"], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, None),
        ],
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(steps, np.int64), "fuzz_steps"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(False), "fuzz_no"))
    nodes = list(model.graph.node)
    nodes.insert(
        nodes.index(node) + 1, helper.make_node("Loop", ["fuzz_steps", "", name + "_start"], [name], body=body)
    )
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return f"{name!r} through a Loop of {steps} steps"


def open_output(model: ModelProto, rng: random.Random) -> str:
    """A value between becomes an output too."""
    found = [name for n in model.graph.node for name in n.output if name]
    if not found:
        return ""
    chosen = rng.choice(found)
    model.graph.output.append(helper.make_tensor_value_info(chosen, rng.choice((1, 1, 7, 9)), None))
    return f"{chosen!r} is an output too"


MUTATIONS = (nest, loop, open_output)


def change_bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A serialized model with some bytes flipped, cut out, doubled, or its end missing."""
    changed = bytearray(data)
    told = []
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not changed:
            break
        place = rng.randrange(len(changed))
        how = rng.choice(("flip", "flip", "flip", "set", "cut", "double", "end"))
        if how == "flip":
            changed[place] ^= 1 << rng.randrange(8)
        elif how == "set":
            changed[place] = rng.choice((0, 0x7F, 0x80, 0xFF))
        elif how == "cut":
            del changed[place : place + rng.randint(1, 16)]
        elif how == "double":
            changed[place:place] = changed[place : place + rng.randint(1, 64)]
        elif rng.random() < 0.2:
            del changed[place:]
        told.append(f"{how} at {place}")
    return bytes(changed), ", ".join(told[:6])
