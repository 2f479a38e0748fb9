# SPDX-License-Identifier: Apache-2.0
"""One attempt at rewriting the nodes that an engine lacks, for one set of opsets.

Each node is cut out of the model and shown to the engine (`shown_node.py`). One that it refuses goes to the rules; the first whose
body the engine takes, node by node and rules applied to them in turn, takes the node's place (`fragment.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.engine import Engine, Trusting, Unasked
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.fragment import Fragment
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.passes.broadcast_axes import names_axis
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.rules import RULES
from onnx_multi_backend.adapt.rules.version import convert_version
from onnx_multi_backend.adapt.rules.widen import widen_types
from onnx_multi_backend.adapt.shown_node import ShownNode, ask_about
from onnx_multi_backend.adapt.single_node import Scope, infer, is_valid, opset_versions
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.targets import Targets
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import one_of_each_first, subgraphs

logger = logging.getLogger(__name__)


#: How many nodes are asked about at once.
_AT_ONCE = 16


class Attempt:
    """One attempt, for one set of opsets."""

    def __init__(
        self,
        engine: Engine,
        within: Engine,
        targets: Mapping[str, int],
        ir_version: int,
        marker: str,
        patience: Patience,
        facts: Facts,
    ) -> None:
        self.changes: list[Adaptation] = []
        self._engine = engine
        self._within = within
        self._targets = Targets(targets)
        self._ir_version = ir_version
        self._marker = marker
        self._patience = patience
        self._facts = facts
        self._memo: dict[tuple[int, bool, bytes], Fragment | None] = {}
        self._count = 0
        #: The nodes that no rule helps.
        self.refused: list[Site] = []
        #: Whether no other attempt helps a node either: then the model cannot be rewritten.
        self.hopeless: Callable[[ShownNode], bool] = lambda shown: True
        #: Whether there was a node that cannot be shown by itself.
        self.unseen = False
        #: Whether a node whose form is wrong went to another kernel, by a wider type.
        self.widened = False
        #: Whether a node was refused because it means something else in the opset that the engine is to get.
        self.mixed = False
        #: Whether what takes a node's place tells as much of its integers as the node did, wherever a node was replaced.
        self.tells_as_much = True

    @property
    def opsets(self) -> Mapping[str, int]:
        """The opset of each domain that the engine is to get."""
        return self._targets.versions

    def whole(self, graph: GraphProto, around: Scope, opsets: Mapping[str, int]) -> bool:
        """Rewrite a model's main graph, and record what was done; False where a node is left that the engine lacks."""
        return self._graph(graph, around, opsets, record=True)

    def ask_first(self, graph: GraphProto, around: Scope, opsets: Mapping[str, int], complaint: str) -> None:
        """Query the operators first that the engine named when it refused the model: if they cannot be rewritten, little else matters."""
        defective_nodes = {n.op_type for n in graph.node if n.op_type in complaint} | self._patience.hopeless
        named = [n for n in graph.node if n.op_type in defective_nodes and next(subgraphs(n), None) is None]
        scope = around.inside(graph) if named else around
        order = [named[place] for place in one_of_each_first([node.op_type for node in named])]
        for start in range(0, len(order), _AT_ONCE):
            if self._patience.over:
                return
            group = [self._shown(node, scope, opsets) for node in order[start : start + _AT_ONCE]]
            ask_about(group, self._engine, written=False, known=self._memo)
            for shown in group:
                if self._patience.over:
                    return
                if self._fragment(shown, self._engine, written=False) is None:
                    self._give_up(shown)

    def helps(self, other: ShownNode) -> bool:
        """Whether the engine has a node of the model in these opsets, or a rule helps."""
        shown = self._shown(other.node, other.scope, other.opsets)
        return self._fragment(shown, self._engine, written=False) is not None

    def _shown(self, node: NodeProto, scope: Scope, opsets: Mapping[str, int]) -> ShownNode:
        return ShownNode(node, scope, opsets, self._targets, self._ir_version)

    def _graph(self, graph: GraphProto, outer: Scope, opsets: Mapping[str, int], *, record: bool = False) -> bool:
        scope = outer.inside(graph)
        if not record and not self._blameless(graph, scope, opsets):
            return False
        nodes: list[NodeProto] = []
        complete = True
        asked = self._engine if record else self._within
        group: list[ShownNode] = []
        for place, node in enumerate(graph.node):
            if self._patience.over:
                return False
            if place % _AT_ONCE == 0:
                group = [self._shown(node, scope, opsets) for node in graph.node[place : place + _AT_ONCE]]
                ask_about(group, asked, written=not record, known=self._memo)
            shown = group[place % _AT_ONCE]
            held = subgraphs(node) if shown.holds_graphs else ()
            inside = [self._graph(inner, scope, opsets, record=record) for inner in held]
            if not all(inside):
                if not record:
                    return False
                complete = False
                if self._patience.lost:  # it is refused for what is inside
                    nodes.append(node)
                    continue
            fragment = self._fragment(shown, asked, written=not record)
            if fragment is None:
                if not record:
                    return False
                self._give_up(shown)
                complete = False
            if not fragment or not fragment.rule:
                nodes.append(node)
                continue
            self._count += 1
            new = fragment.in_place_of(node, f"{self._marker}{self._count}")
            nodes += new
            if record:
                self.changes.append(fragment.change(node, new))
                self.tells_as_much = self.tells_as_much and fragment.tells_as_much(node, scope.values)
        del graph.node[:]
        graph.node.extend(nodes)
        return complete

    def _blameless(self, graph: GraphProto, scope: Scope, opsets: Mapping[str, int]) -> bool:
        """Whether the engine has those nodes of a body, or rules help, that it named when it refused the whole."""
        blamed = self._patience.blamed
        if not blamed:
            return True
        named = (n for n in graph.node if n.op_type in blamed and next(subgraphs(n), None) is None)
        shown = (self._shown(node, scope, opsets) for node in named)
        return all(self._fragment(node, self._within, written=True) is not None for node in shown)

    def _fragment(self, shown: ShownNode, engine: Engine, *, written: bool) -> Fragment | None:
        """What to do with a node; None where the engine lacks it and no rule helps."""
        if not written and self._trusts(shown, engine) and shown.keeps_meaning:
            return Fragment()
        if shown.model is None:
            self.unseen = True
            return Fragment() if shown.keeps_meaning and shown.is_rewritten_inside else None
        key = shown.memo_key(engine, written=written)
        if key not in self._memo:
            self._memo[key] = None  # a node that comes up again while it is rewritten leads nowhere
            self._memo[key] = self._solve(shown, engine, written=written)
        return self._memo[key]

    def _trusts(self, shown: ShownNode, engine: Engine) -> bool:
        if not isinstance(engine, Trusting) or shown.holds_graphs:
            return False
        read = [shown.scope.values.get(name, Value()) for name in shown.node.input if name]
        return engine.trusts(shown.node, self._facts, read)

    def _solve(self, shown: ShownNode, engine: Engine, *, written: bool) -> Fragment | None:
        self._patience.look()
        self.mixed |= not shown.keeps_meaning
        defect = shown.why_not(engine, written=written)
        if defect is None:
            return Fragment()
        site = shown.site
        rules = (*engine.own_rules, *RULES, *(() if written else engine.rules))
        if names_axis(site.node, site.opset):
            rules = (convert_version,)  # the others know the newer broadcasting alone
        for rule in rules if is_valid(site.model) else ():
            if self._patience.over:
                return None
            if rule is convert_version and engine.ignores_opset and shown.keeps_meaning:
                continue
            for body in rule(site):
                typed, before = infer(body), self._count
                if self._graph(typed.graph, Scope({}, {}), opset_versions(typed)):
                    self.widened |= defect.wrong and rule is widen_types
                    told = Scope({}, {}).inside(typed.graph).values if self._count == before else {}
                    return Fragment(tuple(typed.graph.node), rule.__name__, defect.words, told)
        logger.debug("no rule for %s: %s", site.model, defect.words)
        self.refused.append(site)
        return None

    def _give_up(self, shown: ShownNode) -> None:
        """Limit the search for a node that no rule rewrites, unless the model may be taken with it as it is."""
        if self._patience.lost or self._runs_elsewhere(shown) or shown.may_stay(self._engine):
            return
        if self.hopeless(shown):
            self._patience.lose(shown.node.op_type)

    def _runs_elsewhere(self, shown: ShownNode) -> bool:
        """Whether a node may stay that the engine does not take: whoever is asked about the nodes in its place runs it."""
        other = self._within.engine if isinstance(self._within, Unasked) else self._within
        return other.identity != self._engine.identity and shown.runs_on(other)
