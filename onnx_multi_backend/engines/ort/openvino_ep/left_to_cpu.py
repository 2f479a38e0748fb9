# SPDX-License-Identifier: Apache-2.0
"""Nodes that OpenVINO's built-in provider computes wrongly, written so that it leaves them to the CPU provider.

It takes no node that makes or carries text, and in the branches of an If that it does not take nothing that reads a value from outside
(measured with 1.24.1; the placement is checked). So an If gets a text for another output, a Loop one for another state, and any other
node is put in a branch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.known_numbers import known_numbers
from onnx_multi_backend.adapt.names import CAST, LEFT
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import Body, Rule, Site
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.openvino_ep.branched import branched
from onnx_multi_backend.engines.ort.openvino_ep.outer_reads import LOOPS, carries_text, loop_in_branch, outer_reads
from onnx_multi_backend.engines.ort.openvino_ep.texts import make_text, with_texts
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, graphs_in, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

#: Loops have rules of their own.
_NOT_MOVED = frozenset({"Loop", "SequenceMap"})


def left_to_cpu(site: Site) -> Iterator[ModelProto]:
    """Have the CPU provider compute a node."""
    if site.domain or site.op_type in _NOT_MOVED or LEFT in site.node.name:
        return
    kinds = [site.type(name) for name in site.node.output if name]
    if any(kind is None or not kind.WhichOneof("value") for kind in kinds):
        return
    if site.op_type == "If":
        body = Body(site, site.opsets)
        own = NodeProto()
        own.CopyFrom(site.node)
        own.name = LEFT
        make_text(own, "text")
        yield body.finish(*body.add(own)[:-1])
        return
    own = NodeProto()
    own.CopyFrom(site.node)
    own.name = ""
    yield from _in_branches(site, [own])


def rewritten_and_left(site: Site, rule: Rule) -> Iterator[ModelProto]:
    """Have the CPU provider compute what a rule writes in a node's place: a node that the CPU provider computes wrongly too."""
    if site.domain or site.op_type in _NOT_MOVED or LEFT in site.node.name:
        return
    for written in rule(site):
        yield from _in_branches(site, written.graph.node, opset_versions(written))


def _in_branches(
    site: Site, nodes: Sequence[NodeProto], opsets: Mapping[str, int] | None = None
) -> Iterator[ModelProto]:
    """An If whose branches hold what makes a node's outputs; the other branch is never chosen."""
    read = [v.name for v in site.model.graph.input if v.type.HasField("tensor_type")]
    wanted = [name for name in site.node.output if name]
    types = {name: kind for name in wanted if (kind := site.type(name)) is not None}
    if not read or len(types) != len(wanted):
        return
    body = Body(site, opsets or site.opsets)
    *made, _ = body.add(branched(nodes, types, _always(body, read), f"{CAST}_{LEFT}"))
    results = dict(zip(wanted, made, strict=True))
    yield body.finish(*(results.get(name, "") for name in site.node.output))


def _always(body: Body, read: Sequence[str]) -> str:
    """A condition that is true, and known only at run time where one of these values is: a constant one would be resolved before it is placed."""
    sizes = [body.cast(body("Size", name, name=f"{CAST}_{LEFT}"), TensorProto.FLOAT) for name in read]
    size = sizes[0] if len(sizes) == 1 else body("Sum", *sizes, name=f"{CAST}_{LEFT}")
    return str(body("Less", body.constant(-1.0, TensorProto.FLOAT), size, name=f"{CAST}_{LEFT}"))


def taken_anyway(placement: Iterable[NodePlacement]) -> list[NodePlacement]:
    """The nodes that were to be left, and run on a provider other than the CPU's."""
    left = (node for node in placement if LEFT in node.name and CAST not in node.name)
    return [node for node in left if node.provider != providers.CPU]


def loops_left(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with a text for another state of each Loop that would end the provider's process, or may make no step.

    Of a loop that makes no step the provider gives the results of the run before. An If ends the process too that holds a loop, or a Scan,
    which reads values from outside.
    """
    model = payload.adapted.proto
    if not payload.adapted.facts.contents.has(LOOPS) or expands_too_far(model):
        return payload, ()
    flat = inlined(model)
    certain = _certain_steps(flat)

    def is_meant(node: NodeProto) -> bool:
        return _ends_the_process(node) or _may_make_no_step(node, certain)

    if not any(map(is_meant, all_nodes(flat))):
        return payload, ()
    reason = (
        "the OpenVINO execution provider cannot read the outer graph in a body, gives the results of the run before where a loop makes "
        "no step, and leaves nodes that handle text to the CPU"
    )
    return with_texts(payload, flat, is_meant, "Loop", reason)


def _certain_steps(model: ModelProto) -> set[str]:
    """What is known to be positive, or true, in a model without functions."""
    certain: dict[str, bool] = {}
    for graph in graphs_in(model.graph):
        for name, number in known_numbers(graph).items():
            certain[name] = certain.get(name, True) and bool(number > 0)
    return {name for name, holds in certain.items() if holds}


def _may_make_no_step(node: NodeProto, certain: Collection[str]) -> bool:
    """Whether a Loop that carries no text is not known to make a step; its trip count and its condition may be omitted."""
    if node.op_type != "Loop" or canonical(node.domain) or all(not name or name in certain for name in node.input[:2]):
        return False
    return not any(map(carries_text, subgraphs(node)))


def _ends_the_process(node: NodeProto) -> bool:
    """Whether it is such a Loop, or such an If."""
    if node.op_type == "Loop" and not canonical(node.domain):
        return outer_reads(node, []) is not None
    return loop_in_branch(node, []) is not None
