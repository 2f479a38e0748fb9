# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a sequence that a recurrent layer and another one read, or a Transpose.

It gives each layer a Transpose of steps and batch, makes one of all that are equal, and a Reshape of that where it moves it behind the first layer:
the others read elements in another order. Each reads the larger of what the one before it reads and itself, which is the sequence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, larger, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_TURNED = [1, 0, 2]
_CHANGE = "given what the other readers of the sequence do not read"
_REASON = "OpenVINO would turn the sequence once for all of them, and another way for one"


def sequences_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which each reader of such a sequence has one of its own; None where there are none."""
    if not contents.has(LAYERS) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)

    def later(nodes: Sequence[NodeView]) -> dict[int, str]:
        same = _equal_values(nodes)
        readers: defaultdict[str, list[int]] = defaultdict(list)
        for place, node in enumerate(nodes):
            if _turns(node):
                readers[same.get(node.input[0], node.input[0])].append(place)
        groups = {
            name: places for name, places in readers.items() if any(nodes[place].operator in LAYERS for place in places)
        }
        return {place: name for name, places in groups.items() for place in places[1:]}

    found = [later(nodes) for nodes in walked.views]
    if not any(found):
        return None
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, sequence: str, kept: dict[str, str]) -> Iterator[NodeProto]:
        own = unused(f"{sequence}{CAST}sequence", taken)
        changes.append(
            Adaptation("sequences_apart", f"{node.op_type} {node.name or node.output[0]!r}", _CHANGE, _REASON)
        )
        yield larger(kept.get(sequence, node.input[0]), own, name=own)
        node.input[0] = kept[sequence] = own
        yield node

    return written(flat, found, write, changes)


def _equal_values(nodes: Sequence[NodeView]) -> dict[str, str]:
    """What nodes of a graph make that is another value of it too, and that value: of Identities, and of equal nodes."""
    same: dict[str, str] = {}
    first: dict[tuple[object, ...], list[str]] = {}
    for node in nodes:
        read = tuple(same.get(name, name) for name in node.input)
        if node.operator == "Identity":
            same[node.output[0]] = read[0]
            continue
        attributes = sorted(a.SerializeToString(deterministic=True) for a in node.proto.attribute)
        made = first.setdefault((node.proto.domain, node.proto.op_type, read, *attributes), node.output)
        if made is not node.output:
            same.update((name, made[i]) for i, name in enumerate(node.output) if name and i < len(made))
    return same


def _turns(node: NodeView) -> bool:
    """Whether a node is a layer, or turns a sequence as OpenVINO does for one."""
    if node.operator in LAYERS:
        return bool(node.input and node.input[0])
    return node.operator == "Transpose" and any(
        a.name == "perm" and list(a.ints) == _TURNED for a in node.proto.attribute
    )
