# SPDX-License-Identifier: Apache-2.0
"""Rewriting the nodes that an engine lacks, until it has all of them: in the model's own opset, then in others that are worth a try."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import onnx
from onnx import FunctionProto, ModelProto

from onnx_multi_backend.adapt.attempt import Attempt
from onnx_multi_backend.adapt.engine import Engine
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.adapt.same_operator import is_written_for
from onnx_multi_backend.adapt.shown_node import ShownNode
from onnx_multi_backend.adapt.single_node import Typed, opset_imports, opset_versions
from onnx_multi_backend.adapt.site import BODY_OPSET
from onnx_multi_backend.adapt.targets import older_opsets
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import all_nodes, canonical

#: Opsets of the default domain that a model is lifted to where the engine has no kernels for its own.
_LIFTS = (9, 13, 18, 21)

#: How many rewritten models are shown to the engine with nodes left that it refused by themselves.
_PARTLY = 2


def lower(
    adapted: Adapted,
    engine: Engine,
    within: Engine | None = None,
    *,
    complaint: str = "",
    patience: Patience | None = None,
    typed: Typed | None = None,
) -> Iterator[Adapted]:
    """Rewrite what the engine lacks.

    Parameters
    ----------
    adapted : Adapted
        The model as the passes left it.
    engine : Engine
        Is asked about the nodes of the model.
    within : Engine, optional
        Is asked about the nodes that take their place; by default `engine`.
    complaint : str
        Why the engine refused the model: the operators that it names are asked about first.
    patience : Patience, optional
        Counts once a node cannot be rewritten, and neither `engine` nor `within` runs it as it is; nothing more comes when it
        has run out.
    typed : Typed, optional
        Of the model, to be used again.

    Yields
    ------
    Adapted
        The rewritten model, the most promising first: one whose nodes the engine takes each by itself, then those where
        a node is left that it refused by itself and may take in its place. Nothing where no rule helps.
    """
    typed = typed or Typed(adapted.proto)
    model = typed.flat
    facts = Facts(model)
    patience = patience or Patience()
    patience.renew()
    given = opset_versions(model)
    unused = _unused(adapted.proto, given)
    newest = engine.limits.max_opset("")
    tried: set[int] = set()
    partly: list[Adapted] = []
    wider: list[Adapted] = []

    def lowering_to(opset: int) -> Attempt:
        targets = {**{d: _within(engine.limits, d, v) for d, v in given.items()}, "": opset}
        return Attempt(engine, within or engine, targets, model.ir_version, _marker(model), patience, facts)

    def later(lowering: Attempt) -> list[int]:
        """The opsets that are worth a try after one."""
        opset = lowering.opsets[""]
        if engine.ignores_opset:  # only where a rule's body is of a newer one than the model
            return [BODY_OPSET] if lowering.mixed and opset < BODY_OPSET else []
        lifts = [o for o in (*_LIFTS, newest or 0) if o > max(opset, given.get("", 1))]
        return [*older_opsets(lowering.refused, opset), *lifts]

    def others(lowering: Attempt) -> list[Attempt]:
        newer = (
            [BODY_OPSET] if engine.ignores_opset and lowering.opsets[""] < BODY_OPSET else []
        )  # another node may need it
        return [lowering_to(opset) for opset in dict.fromkeys((*todo, *later(lowering), *newer))]

    todo = [_within(engine.limits, "", given.get("", onnx.defs.onnx_opset_version()))]
    while todo:
        opset = todo.pop(0)
        if opset in tried:
            continue
        tried.add(opset)
        attempt = ModelProto()
        attempt.CopyFrom(typed.model)
        lowering = lowering_to(opset)
        lowering.hopeless = functools.partial(_hopeless, lowering, others)
        around = typed.scope_of(attempt.graph)
        lowering.ask_first(attempt.graph, around, given, complaint)
        complete = lowering.whole(attempt.graph, around, given)
        if patience.over:
            break
        if complete and (lowering.changes or adapted.proto.functions or unused or opset != given.get("", opset)):
            made = _finished(adapted, attempt, given, lowering, complete=True)
            if lowering.widened and engine.ignores_opset and (newer := later(lowering)):
                wider, todo = [made], newer  # where a rule writes the node in another way, that is meant
                continue
            yield made
            yield from wider
            return
        if complete and not lowering.unseen:  # the engine takes each node as it is: no other opset would change that
            return
        if (lowering.changes or adapted.proto.functions) and is_written_for(all_nodes(attempt), lowering.opsets):
            partly.append(_finished(adapted, attempt, given, lowering, complete=False))
        todo += later(lowering)
    yield from wider
    yield from partly[:_PARTLY]


def _hopeless(lowering: Attempt, others: Callable[[Attempt], list[Attempt]], node: ShownNode) -> bool:
    """Whether none of the other attempts rewrites a node either that one attempt cannot rewrite."""
    targets = {lowering.opsets[""]}
    for other in others(lowering):
        if other.opsets[""] not in targets and other.helps(node):
            return False
        targets.add(other.opsets[""])
    return True


def _finished(
    adapted: Adapted, model: ModelProto, given: Mapping[str, int], lowering: Attempt, *, complete: bool
) -> Adapted:
    used = {canonical(node.domain) for node in all_nodes(model)}
    opsets = {d: v for d, v in lowering.opsets.items() if d in used or not d}
    del model.opset_import[:]
    model.opset_import.extend(opset_imports(opsets))
    changes = [*map(_inlining, adapted.proto.functions), *lowering.changes]
    if opsets[""] != given.get("", opsets[""]):
        reason = "the engine has no kernels for its own, and no operator used here changed in between"
        change = f"opset {given['']} of ai.onnx to {opsets['']}"
        changes.insert(0, Adaptation("opset_version", "", change, reason))
    changes += [
        Adaptation("opset_version", "", f"import of {domain} left out", "no operator used here belongs to it")
        for domain in _unused(adapted.proto, given)
    ]
    inserted = {node.name for node in all_nodes(model) if CAST in str(node.name)}
    return replace(
        adapted,
        proto=model,
        changes=(*adapted.changes, *changes),
        inserted=adapted.inserted | inserted,
        settled=complete and lowering.tells_as_much,
    )


def _unused(model: ModelProto, given: Mapping[str, int]) -> list[str]:
    """The domains that a model imports and uses nothing of."""
    return sorted(given.keys() - {canonical(node.domain) for node in all_nodes(model)} - {""})


def _inlining(function: FunctionProto) -> Adaptation:
    name = f"{function.domain}.{function.name}" if function.domain else function.name
    reason = "the engine takes no local functions, or lacks a node in one"
    return Adaptation("inline_functions", name, "its body takes the place of each call", reason)


def _within(limits: Limits, domain: str, version: int) -> int:
    """An opset that the engine reads: this one, or its newest."""
    newest = limits.max_opset(domain)
    return version if newest is None else min(version, newest)


def _marker(model: ModelProto) -> str:
    """What no name in the model holds."""
    names = {name for node in all_nodes(model) for name in (node.name, *node.output)}
    marker = "/omb"
    while any(marker in str(name) for name in names):
        marker += "_"
    return marker
