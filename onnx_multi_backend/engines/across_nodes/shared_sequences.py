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
from onnx_multi_backend.engines.across_nodes.apart import flat_for, larger, passed_from, written
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

    def later(nodes: Sequence[NodeView]) -> dict[int, int]:
        readers: defaultdict[str, list[int]] = defaultdict(list)
        for place, node in enumerate(nodes):
            if _turns(node):
                readers[passed_from(node.input[0], walked.makers, ("Identity",))].append(place)
        groups = [places for places in readers.values() if any(nodes[place].operator in LAYERS for place in places)]
        return {place: 0 for places in groups for place in places[1:]}

    found = [later(nodes) for nodes in walked.views]
    if not any(found):
        return None
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, place: int, kept: dict[str, str]) -> Iterator[NodeProto]:
        name = node.input[place]
        own = unused(f"{name}{CAST}sequence", taken)
        changes.append(
            Adaptation("sequences_apart", f"{node.op_type} {node.name or node.output[0]!r}", _CHANGE, _REASON)
        )
        yield larger(kept.get(name, name), own, name=own)
        node.input[place] = kept[name] = own
        yield node

    return written(flat, found, write, changes)


def _turns(node: NodeView) -> bool:
    """Whether a node is a layer, or turns a sequence as OpenVINO does for one."""
    if node.operator in LAYERS:
        return bool(node.input and node.input[0])
    return node.operator == "Transpose" and any(
        a.name == "perm" and list(a.ints) == _TURNED for a in node.proto.attribute
    )
