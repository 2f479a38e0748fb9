# SPDX-License-Identifier: Apache-2.0
"""Mutations of nodes: attributes, edges, operators."""

from __future__ import annotations

import random

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, helper

from backend_test.search.mutations.walk import REALS, TEXTS, all_nodes, extreme, graphs, names, pick


def attribute(model: ModelProto, rng: random.Random) -> str:
    """An attribute gets an extreme value."""
    found = [(n, a) for n in all_nodes(model) for a in n.attribute if a.type in _CHANGES]
    if not found:
        return ""
    node, chosen = rng.choice(found)
    before = str(helper.get_attribute_value(chosen))[:40]
    _CHANGES[chosen.type](chosen, rng)
    return f"{node.op_type}.{chosen.name}: {before} -> {str(helper.get_attribute_value(chosen))[:60]}"


def _int(a: AttributeProto, rng: random.Random) -> None:
    a.i = extreme(rng, a.i)


def _ints(a: AttributeProto, rng: random.Random) -> None:
    how = rng.randrange(4)
    if how == 0 or not a.ints:
        a.ints.append(extreme(rng))
    elif how == 1:
        del a.ints[rng.randrange(len(a.ints))]
    elif how == 2 and rng.random() < 0.3:
        del a.ints[:]
    else:
        place = rng.randrange(len(a.ints))
        a.ints[place] = extreme(rng, a.ints[place])


def _float(a: AttributeProto, rng: random.Random) -> None:
    a.f = rng.choice(REALS)


def _floats(a: AttributeProto, rng: random.Random) -> None:
    if a.floats and rng.random() < 0.7:
        a.floats[rng.randrange(len(a.floats))] = rng.choice(REALS)
    else:
        a.floats.append(rng.choice(REALS))


def _text(a: AttributeProto, rng: random.Random) -> None:
    a.s = rng.choice(TEXTS)


def _texts(a: AttributeProto, rng: random.Random) -> None:
    if a.strings and rng.random() < 0.5:
        a.strings[rng.randrange(len(a.strings))] = rng.choice(TEXTS)
    else:
        a.strings.append(rng.choice(TEXTS))


_CHANGES = {
    AttributeProto.INT: _int,
    AttributeProto.INTS: _ints,
    AttributeProto.FLOAT: _float,
    AttributeProto.FLOATS: _floats,
    AttributeProto.STRING: _text,
    AttributeProto.STRINGS: _texts,
}


def new_attribute(model: ModelProto, rng: random.Random) -> str:
    """A node gets an attribute that its schema knows, with any value."""
    node = pick(rng, (n for n in all_nodes(model) if not n.domain))
    if node is None:
        return ""
    try:
        schema = onnx.defs.get_schema(node.op_type, "")
    except onnx.defs.SchemaError:
        return ""
    kinds = {int(AttributeProto.INT), int(AttributeProto.INTS), int(AttributeProto.FLOAT), int(AttributeProto.STRING)}
    fitting = [a for a in schema.attributes.values() if int(a.type.value) in kinds]
    if not fitting:
        return ""
    chosen = rng.choice(fitting)
    made = AttributeProto(name=chosen.name, type=int(chosen.type.value))  # type: ignore[arg-type]
    _CHANGES[made.type](made, rng)
    for old in [a for a in node.attribute if a.name == made.name]:
        node.attribute.remove(old)
    node.attribute.append(made)
    return f"{node.op_type}.{made.name} = {str(helper.get_attribute_value(made))[:60]}"


def less_attribute(model: ModelProto, rng: random.Random) -> str:
    """An attribute goes, comes twice, or gets another name or type."""
    found = [(n, a) for n in all_nodes(model) for a in n.attribute]
    if not found:
        return ""
    node, chosen = rng.choice(found)
    told = f"{node.op_type}.{chosen.name}"
    how = rng.randrange(4)
    if how == 0:
        node.attribute.remove(chosen)
        return f"{told} removed"
    if how == 1:
        node.attribute.add().CopyFrom(chosen)
        return f"{told} twice"
    if how == 2:
        chosen.name = rng.choice(("", "axis", "axes", "to", "nothing"))
        return f"{told} renamed {chosen.name!r}"
    chosen.type = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 11))  # type: ignore[assignment]
    return f"{told} of type {chosen.type}"


def rewire(model: ModelProto, rng: random.Random) -> str:
    """An input of a node becomes another value, an empty name, or one that nothing makes."""
    node = pick(rng, (n for n in all_nodes(model) if n.input))
    if node is None:
        return ""
    place = rng.randrange(len(node.input))
    before = node.input[place]
    node.input[place] = rng.choice([*names(model), "", "nothing", *node.output])
    return f"{node.op_type} input {place}: {before!r} -> {node.input[place]!r}"


def operands(model: ModelProto, rng: random.Random) -> str:
    """A node gets trailing empty inputs, one input more or one less; or the same of outputs."""
    node = pick(rng, all_nodes(model))
    if node is None:
        return ""
    how = rng.randrange(6)
    if how <= 1:
        count = rng.randint(1, 3)
        node.input.extend([""] * count)
        return f"{node.op_type}: {count} trailing empty inputs"
    if how == 2 and node.input:
        del node.input[rng.randrange(len(node.input))]
        return f"{node.op_type}: one input less"
    if how == 3:
        node.input.append(rng.choice(list(names(model)) or [""]))
        return f"{node.op_type}: one input more"
    if how == 4 and node.output:
        del node.output[-1]
        return f"{node.op_type}: one output less"
    node.output.append(rng.choice(("", "more", *node.output)))
    return f"{node.op_type}: output {node.output[-1]!r} more"


def output_name(model: ModelProto, rng: random.Random) -> str:
    """An output gets the name of another value, an empty one, or an odd one."""
    node = pick(rng, (n for n in all_nodes(model) if n.output))
    if node is None:
        return ""
    place = rng.randrange(len(node.output))
    before = node.output[place]
    node.output[place] = rng.choice([*names(model), "", "a\x00b", "x" * 3000, "naïve/输出"])
    return f"{node.op_type} output {place}: {before!r} -> {node.output[place][:40]!r}"


def operator(model: ModelProto, rng: random.Random) -> str:
    """A node becomes one of another operator or domain."""
    node = pick(rng, all_nodes(model))
    if node is None:
        return ""
    before = f"{node.domain}.{node.op_type}"
    if rng.random() < 0.8:
        node.op_type = rng.choice(_operators())
    else:
        node.domain = rng.choice(("ai.onnx", "com.microsoft", "ai.onnx.ml", "nothing", "local"))
    return f"{before} -> {node.domain}.{node.op_type}"


def _operators() -> list[str]:
    return sorted({s.name for s in onnx.defs.get_all_schemas() if not s.domain}) + ["Nothing", "", "FusedConv"]


def order(model: ModelProto, rng: random.Random) -> str:
    """A node goes, comes twice, or stands elsewhere."""
    graph = pick(rng, (g for g in graphs(model) if g.node))
    if graph is None:
        return ""
    place = rng.randrange(len(graph.node))
    copy = NodeProto()
    copy.CopyFrom(graph.node[place])
    how = rng.randrange(3)
    if how != 1:
        del graph.node[place]
    if how:
        rest = list(graph.node)
        rest.insert(rng.randint(0, len(rest)), copy)
        del graph.node[:]
        graph.node.extend(rest)
    return f"{copy.op_type} {('removed', 'twice', 'moved')[how]}"


MUTATIONS = (
    attribute,
    attribute,
    new_attribute,
    less_attribute,
    rewire,
    operands,
    operands,
    output_name,
    operator,
    order,
)
