# SPDX-License-Identifier: Apache-2.0
"""Nodes put in the branches of an If that OpenVINO's built-in provider leaves to the CPU provider; see `left_to_cpu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto, TypeProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.names import LEFT
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.engines.ort.openvino_ep.texts import make_text


def branched(nodes: Sequence[NodeProto], results: Mapping[str, TypeProto], true: str, name: str) -> NodeProto:
    """An If of a true condition whose branches both hold these nodes, so that either makes their results; it makes a text too.

    Parameters
    ----------
    nodes : sequence of onnx.NodeProto
    results : mapping of str to onnx.TypeProto
        What it makes of their values.
    true : str
        The condition, which must be known only at run time.
    name : str
        Of the If. Names that begin so are used inside.
    """
    choice = helper.make_node("If", [true], list(results), name=name)
    made = {made for node in nodes for made in node.output if made}
    for branch in ("then_branch", "else_branch"):
        names = {value: f"{name}_{branch}_{value}" for value in made}
        own = [renamed(node, lambda value, names=names: names.get(value, value)) for node in nodes]  # type: ignore[misc]
        for i, node in enumerate(own):
            node.name = f"{LEFT}_{branch}{i}{node.name}"
        types = [ValueInfoProto(name=names[value], type=kind) for value, kind in results.items()]
        choice.attribute.append(helper.make_attribute(branch, helper.make_graph(own, branch, [], types)))
    make_text(choice, f"{name}_text")
    return choice
