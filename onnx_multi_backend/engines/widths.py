# SPDX-License-Identifier: Apache-2.0
"""Models whose types are wider than what their engine computes in: what is refused, told, or checked at each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from onnx import AttributeProto, TensorProto

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.intervals.study import Concern, Study
from onnx_multi_backend.adapt.intervals.values import of_type
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.engines.diagnosis import computed_wrongly
from onnx_multi_backend.engines.placed import runs_on_requested
from onnx_multi_backend.engines.session import Built, Payload
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import PrecisionWarning
from onnx_multi_backend.models.graph_walk import operator_name, subgraphs
from onnx_multi_backend.models.tensors import WIDE
from onnx_multi_backend.user_warnings import warn

_COMPUTED = WIDE | {TensorProto.INT32}
_MOST_NAMED = 5


class _Words(NamedTuple):
    """What an engine does, and where another one is better."""

    what: str
    where: str


_IN_FLOAT = _Words("OpenVINO computes float64 in float32 (7 digits, up to 3.4e38)", "for float64")
_IN_INT32 = _Words(
    "OpenVINO computes int64 in int32, and what a run chooses from constants may come to more than that holds",
    "where it does",
)


def look(target: Target, payload: Payload) -> Study:
    """What the engine makes of the types of a model; nothing for a model that is to be left as it stands."""
    model = payload.adapted.proto
    if not payload.lowering or not (target.narrows or (_has_integers(payload) and _may_be_wrong(target, payload))):
        return Study()
    from onnx_multi_backend.adapt.intervals.widths import study  # the model of a first run seldom needs it

    return study(
        model,
        target.may_have_integer_defect,
        narrows=target.narrows,
        exact_in_float=target.exact_in_float,
        folds_exactly=target.folds_exactly,
    )


def _has_integers(payload: Payload) -> bool:
    """Whether there are integers of 32 or 64 bits other than sizes and indices."""
    graph = payload.adapted.proto.graph
    if any(v.type.tensor_type.elem_type in _COMPUTED for v in graph.input):
        return True
    return any(
        a.type == AttributeProto.INT and a.name == "to" and a.i in _COMPUTED
        for node in payload.adapted.facts.contents.of("Cast")
        for a in node.attribute
    )


def _may_be_wrong(target: Target, payload: Payload) -> bool:
    """Whether the engine might compute a node wrongly, were its integers as large as their type allows."""
    facts = payload.adapted.facts
    largest = [of_type(kind) for kind in _COMPUTED]
    operators = target.integer_operators
    nodes = [
        node
        for node in (facts.contents.nodes if operators is None else facts.contents.of(*operators))
        if any(target.may_have_integer_defect(node, [value] * len(node.input)) for value in largest)
    ]
    return not all(facts.are_floats(node.input) for node in nodes)


def held(target: Target, payload: Payload, built: Built, found: Study) -> Built:
    """The session, once what the engine computes of the model is known to be right, reported or checked.

    Raises
    ------
    UnsupportedModelError
        A constant or a result is beyond what the engine computes in; or float64 is, and ``precision_policy`` is strict.
    """
    if found.is_clear:
        return built
    from onnx_multi_backend.engines.wrappers.bounded import bounded

    concerned = runs_on_requested(target, built)
    refused = [c for c in (*found.constants, *found.overflows) if concerned(c.node.op_type)]
    if refused and not target.runs_alone:
        refused = _unless_folded(payload, built, refused, concerned)
    own = payload.adapted.inserted
    doubles = [c for c in found.doubles if concerned(c.node.op_type) and c.node.name not in own]
    chosen = [c for c in found.chosen if concerned(c.node.op_type)]
    if target.precision_policy == "strict":
        refused += [*doubles, *chosen]
    if refused:
        raise computed_wrongly(payload, refused, who=target.preset)
    if doubles:
        _tell(target, payload, doubles, _IN_FLOAT)
    if chosen:
        _tell(target, payload, chosen, _IN_INT32)
    bounds = {
        name: bound if concerned("ReduceProd") else bound._replace(products=())
        for name, bound in found.bounds.items()
        if any(concerned(operator) for operator in found.readers.get(name, ()))
    }
    return bounded(built, bounds, payload.loaded.label)


def _unless_folded(
    payload: Payload, built: Built, refused: list[Concern], concerned: Callable[[str], bool]
) -> list[Concern]:
    """Without the nodes that ONNX Runtime computes of constants before anything is placed, where no requested provider reads wide integers of the results.

    These may become outputs, and nodes of another provider may read them.
    """
    model = payload.adapted.proto
    if model.functions:
        return refused
    known = set(Facts(model).known) - {v.name for v in model.graph.input}
    placed = {node.op_type for node in built.session.placement()}
    placed |= {c.node.partition(" ")[0] for c in built.adaptations}  # what took a node's place may be of any operator
    folded, elsewhere = [], []
    computed_with: set[str] = set()
    for node in model.graph.node:
        read = reads(node)
        if next(subgraphs(node), None) is not None:  # the nodes in there are placed one by one
            computed_with.update(read)
        elif node.op_type not in placed and known.issuperset(read):
            folded.append(node)
            known.update(node.output)
        elif not concerned(node.op_type):
            elsewhere.append(node)
        else:
            computed_with.update(read)
    typed = infer(model).graph if elsewhere else model.graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*typed.value_info, *typed.output)}
    seen = -1
    while seen < len(computed_with):
        seen = len(computed_with)
        for node in (*reversed(elsewhere), *reversed(folded)):
            if any(name in computed_with and kinds.get(name, TensorProto.INT64) in WIDE for name in node.output):
                computed_with.update(node.input)
    free = {name for node in folded for name in node.output if name} - computed_with
    return [c for c in refused if free.isdisjoint(c.node.output)]


def _tell(target: Target, payload: Payload, concerns: list[Concern], words: _Words) -> None:
    named = [f"{operator_name(c.node)} {c.node.name or next(iter(c.node.output), '')!r}" for c in concerns]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    warn(
        f"{target.preset}: {words.what} in {payload.loaded.label}: {', '.join(named[:_MOST_NAMED])}{more}. Choose an ONNX Runtime "
        f"preset {words.where}, or pass {option_words.given('precision_policy', 'strict')} to refuse such models.",
        PrecisionWarning,
    )
