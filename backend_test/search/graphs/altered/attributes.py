# SPDX-License-Identifier: Apache-2.0
"""Other values of the attributes that a node has or may have: those of other cases, and numbers near them."""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Callable, Mapping

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, helper

from backend_test.search.cases import cases
from onnx_multi_backend.models.graph_walk import all_nodes

_REALS = (0.0, 0.01, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 10.0, -0.5, -1.0, -2.0)
_WHOLE = (0, 1, 1, 2, 3, -1, -2)
#: What is either 0 or 1: ONNX does not say what another number means.
_FLAGS = frozenset(
    "align_corners allowzero antialias ceil_mode center_point_box count_include_pad exclude_outside exclusive fmod "
    "input_forget interleaved inverse is_causal keepdims largest layout linear_before_reset noop_with_empty_axes onesided "
    "periodic reverse saturate select_last_index sorted storage_order training_mode transA transB upper".split()
)
#: Activations of recurrent layers, of which ONNX's cases have few.
_ACTIVATIONS = "Affine Elu HardSigmoid LeakyRelu Relu ScaledTanh Sigmoid Softplus Softsign Tanh Tanh Sigmoid ThresholdedRelu".split()
#: What takes a list of numbers for the activations, and how many there may be.
_OF_ACTIVATIONS = ("activation_alpha", "activation_beta")


def other_attribute(model: ModelProto, opset: int, rng: random.Random) -> None:
    """Give one node of the graph another value of an attribute, one more, or one less."""
    nodes = [n for n in model.graph.node if not n.domain and onnx.defs.has(n.op_type, opset)]
    if not nodes:
        return
    node = rng.choice(nodes)
    schema = onnx.defs.get_schema(node.op_type, opset)
    names = sorted(name for name, a in schema.attributes.items() if int(a.type.value) in _CHANGES)
    if not names:
        return
    name = rng.choice(names)
    old = next((a for a in node.attribute if a.name == name), None)
    if old is not None and not schema.attributes[name].required and rng.random() < 0.1:
        node.attribute.remove(old)
        return
    made = AttributeProto()
    if old is not None:
        made.CopyFrom(old)
        node.attribute.remove(old)
    elif schema.attributes[name].default_value.name:
        made.CopyFrom(schema.attributes[name].default_value)
    made.name, made.type = name, int(schema.attributes[name].type.value)  # type: ignore[assignment]
    seen = _seen().get((node.op_type, name))
    if seen and rng.random() < 0.3:
        made.ParseFromString(rng.choice(seen))
    else:
        _CHANGES[made.type](made, node, rng)
    node.attribute.append(made)


@functools.cache
def _seen() -> Mapping[tuple[str, str], list[bytes]]:
    """The values that ONNX's cases have, by operator and attribute."""
    found = defaultdict[tuple[str, str], set[bytes]](set)
    for case in cases()[0]:
        assert case.model is not None
        for node in all_nodes(case.model):
            for a in node.attribute:
                if a.type in _CHANGES:
                    found[node.op_type, a.name].add(a.SerializeToString(deterministic=True))
    return {key: sorted(values) for key, values in found.items()}


def _int(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    a.i = 1 - a.i if a.name in _FLAGS else near(a.i, rng)


def near(number: int, rng: random.Random) -> int:
    """A small whole number, most often one beside the given one."""
    return number + rng.choice((-1, 1)) if rng.random() < 0.5 else rng.choice(_WHOLE)


def _ints(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    if not a.ints:  # as many as another attribute has, or as there are axes of an image
        others = [len(other.ints) for other in node.attribute if other.ints]
        a.ints.extend([rng.choice((1, 1, 2))] * rng.choice([*others, 2, 2, 4]))
    elif rng.random() < 0.2:
        rng.shuffle(values := list(a.ints))
        a.ints[:] = values
    else:
        place = rng.randrange(len(a.ints))
        a.ints[place] = near(a.ints[place], rng)


def _float(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    a.f = rng.choice(_REALS)


def _floats(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    count = len(a.floats) or rng.choice((1, 2, 3))
    if a.name in _OF_ACTIVATIONS:
        activations = next((other.strings for other in node.attribute if other.name == "activations"), ())
        count = rng.randint(1, max(len(activations), 3))
    a.floats[:] = [rng.choice(_REALS) for _ in range(count)]


def _text(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    seen = _seen().get((node.op_type, a.name), ())
    if seen:
        a.ParseFromString(rng.choice(seen))


def _texts(a: AttributeProto, node: NodeProto, rng: random.Random) -> None:
    if a.name != "activations":
        return
    held = {b.name: helper.get_attribute_value(b) for b in node.attribute}
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}.get(node.op_type, 1) * (1 + (held.get("direction") == b"bidirectional"))
    a.strings[:] = [rng.choice(_ACTIVATIONS).encode() for _ in range(count)]


_CHANGES: Mapping[int, Callable[[AttributeProto, NodeProto, random.Random], None]] = {
    AttributeProto.INT: _int,
    AttributeProto.INTS: _ints,
    AttributeProto.FLOAT: _float,
    AttributeProto.FLOATS: _floats,
    AttributeProto.STRING: _text,
    AttributeProto.STRINGS: _texts,
}
