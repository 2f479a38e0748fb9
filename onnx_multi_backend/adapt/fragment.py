# SPDX-License-Identifier: Apache-2.0
"""What takes the place of a node that an engine lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import operator_name

#: So many operators of those that take a node's place are named.
_NAMED = 8


@dataclass(frozen=True)
class Fragment:
    """What takes the place of a node, in the names of a model of one node: nothing new where `rule` is empty.

    `told`: what is known of its outputs; empty where a rule wrote a node of it in another way once more.
    """

    nodes: tuple[NodeProto, ...] = ()
    rule: str = ""
    reason: str = ""
    told: Mapping[str, Value] = field(default_factory=dict)

    def tells_as_much(self, node: NodeProto, values: Values) -> bool:
        """Whether as much is known of its outputs as of those of the node."""
        outputs = ((f"o{i}", name) for i, name in enumerate(node.output) if name)
        return all(short in self.told and self.told[short] == values.get(name) for short, name in outputs)

    def in_place_of(self, node: NodeProto, marker: str) -> list[NodeProto]:
        """The nodes between a node's inputs and outputs, all other names made unique by a marker."""
        prefix = f"{node.name or next(filter(None, node.output), node.op_type)}{marker}/"
        names = {f"i{i}": name for i, name in enumerate(reads(node))}
        names.update({f"o{i}": name for i, name in enumerate(node.output) if name})
        made = [renamed(inner, lambda name: names.get(name, prefix + name)) for inner in self.nodes]
        for i, inner in enumerate(made):
            inner.name = f"{prefix}{inner.name or inner.op_type}{i}"
        return made

    def change(self, node: NodeProto, new: Sequence[NodeProto]) -> Adaptation:
        """How it is reported that these nodes took a node's place."""
        operators = list(dict.fromkeys(operator_name(n) for n in new))
        more = len(operators) - _NAMED
        shown = ", ".join(operators[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        output = next(iter(node.output), "")
        where = f"{operator_name(node)} {node.name!r}" if node.name else f"{operator_name(node)} (output {output!r})"
        return Adaptation(self.rule, where, f"written with {shown}", self.reason)
