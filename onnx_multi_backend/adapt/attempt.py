# SPDX-License-Identifier: Apache-2.0
"""One attempt at rewriting the nodes that an engine lacks, for one set of opsets.

Each node is cut out of the model and shown to the engine. One that it refuses goes to the rules; the first whose body
the engine takes, node by node and rules applied to them in turn, takes the node's place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt.engine import Defect, Engine, TakesSeveral, Trusting, Unasked, answer, ask_together
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.adapt.rules import RULES
from onnx_multi_backend.adapt.rules.version import convert_version
from onnx_multi_backend.adapt.rules.widen import widen_types
from onnx_multi_backend.adapt.same_operator import unchanged
from onnx_multi_backend.adapt.single_node import (
    Scope,
    infer,
    is_valid,
    opset_imports,
    opset_versions,
    reads,
    single_node_model,
)
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.values import Value
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import canonical, one_of_each_first, operator_name, subgraphs

logger = logging.getLogger(__name__)


#: How many nodes are asked about at once.
_AT_ONCE = 16


@dataclass(frozen=True)
class Fragment:
    """What takes the place of a node: nothing new where `rule` is empty."""

    nodes: tuple[NodeProto, ...] = ()
    rule: str = ""
    reason: str = ""


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
        self.targets = dict(targets)
        self._ir_version = ir_version
        self._marker = marker
        self._patience = patience
        self._facts = facts
        self._memo: dict[tuple[Hashable, bool, bytes], Fragment | None] = {}
        self._count = 0
        self._refused: list[Site] = []
        #: Whether no other attempt helps a node either: then the model cannot be helped.
        self.hopeless: Callable[[NodeProto, Scope, Mapping[str, int]], bool] = lambda node, scope, opsets: True
        #: Whether there was a node that cannot be shown by itself.
        self.unseen = False
        #: Whether a node whose form is wrong went to another kernel, by a wider type.
        self.widened = False
        #: Whether a node was refused because it means something else in the opset that the engine is to get.
        self.mixed = False

    def whole(self, graph: GraphProto, opsets: Mapping[str, int]) -> bool:
        """Rewrite a model's main graph, and record what was done; False where a node is left that the engine lacks."""
        return self._graph(graph, Scope({}, {}), opsets, record=True)

    def ask_first(self, graph: GraphProto, opsets: Mapping[str, int], complaint: str) -> None:
        """Ask about the operators that the engine named when it refused the model: if they cannot be helped, little else matters."""
        defective_nodes = {n.op_type for n in graph.node if n.op_type in complaint} | self._patience.hopeless
        named = [n for n in graph.node if n.op_type in defective_nodes and next(subgraphs(n), None) is None]
        scope = Scope({}, {}).inside(graph) if named else Scope({}, {})
        order = one_of_each_first([node.op_type for node in named])
        for count, place in enumerate(order):
            if self._patience.over:
                return
            if count % _AT_ONCE == 0:
                group = [named[k] for k in order[count : count + _AT_ONCE]]
                self._ask_together(group, scope, opsets, self._engine, written=False)
            if not self.helps(named[place], scope, opsets):
                self._give_up(named[place], scope, opsets)

    def helps(self, node: NodeProto, scope: Scope, opsets: Mapping[str, int]) -> bool:
        """Whether the engine has a node of the model, or a rule helps."""
        return self._node(node, scope, opsets, self._engine, written=False) is not None

    def _give_up(self, node: NodeProto, scope: Scope, opsets: Mapping[str, int]) -> None:
        if self._patience.lost or self._runs_elsewhere(node, scope, opsets) or self._may_stay(node, scope, opsets):
            return
        if self.hopeless(node, scope, opsets):
            self._patience.lose(node.op_type)

    def _runs_elsewhere(self, node: NodeProto, scope: Scope, opsets: Mapping[str, int]) -> bool:
        """Whether a node may stay that the engine does not take: whoever is asked about the nodes in its place runs it."""
        other = self._within.engine if isinstance(self._within, Unasked) else self._within
        if other.identity == self._engine.identity:
            return False
        single = single_node_model(node, scope, opset_imports(opsets), self._ir_version)
        return single is not None and self._why_not(Site(single, self.targets.get("", 1)), other, written=False) is None

    def _may_stay(self, node: NodeProto, scope: Scope, opsets: Mapping[str, int]) -> bool:
        """Whether the engine takes a node as it is, and computes it wrongly for some values only: the model is not refused for that."""
        single = single_node_model(node, scope, opset_imports(opsets), self._ir_version)
        if single is None or not self._same(node, opsets):
            return False
        defect = self._engine.find_defect(Site(single, self.targets.get("", 1)))
        return defect is not None and not defect.wrong and answer(self._engine, single) is None

    def alternatives(self, opset: int) -> Iterator[int]:
        """Opsets, older than this one, in which a node that was refused means the same: an older kernel may take it."""
        for site in self._refused:
            schema = site.schema
            if not site.domain and schema is not None and schema.since_version <= opset and schema.since_version > 7:
                older = schema.since_version - 1
                if unchanged(site.op_type, "", site.opset, older):
                    yield older

    def _graph(self, graph: GraphProto, outer: Scope, opsets: Mapping[str, int], *, record: bool = False) -> bool:
        scope = outer.inside(graph)
        if not record and not self._blameless(graph, scope, opsets):
            return False
        nodes: list[NodeProto] = []
        complete = True
        asked = self._engine if record else self._within
        for place, node in enumerate(graph.node):
            if self._patience.over:
                return False
            if place % _AT_ONCE == 0:
                self._ask_together(graph.node[place : place + _AT_ONCE], scope, opsets, asked, written=not record)
            inside = [self._graph(inner, scope, opsets, record=record) for inner in subgraphs(node)]
            if not all(inside):
                if not record:
                    return False
                complete = False
                if self._patience.lost:  # it is refused for what is inside
                    nodes.append(node)
                    continue
            fragment = self._node(node, scope, opsets, asked, written=not record)
            if fragment is None:
                if not record:
                    return False
                self._give_up(node, scope, opsets)
                complete = False
            if not fragment or not fragment.rule:
                nodes.append(node)
                continue
            new = self._instance(fragment, node)
            nodes += new
            if record:
                self.changes.append(_change(node, new, fragment))
        del graph.node[:]
        graph.node.extend(nodes)
        return complete

    def _blameless(self, graph: GraphProto, scope: Scope, opsets: Mapping[str, int]) -> bool:
        """Whether the engine has those nodes of a body, or rules help, that it named when it refused the whole."""
        blamed = self._patience.blamed
        if not blamed:
            return True
        named = (n for n in graph.node if n.op_type in blamed and next(subgraphs(n), None) is None)
        return all(self._node(node, scope, opsets, self._within, written=True) is not None for node in named)

    def _node(
        self, node: NodeProto, scope: Scope, opsets: Mapping[str, int], engine: Engine, *, written: bool
    ) -> Fragment | None:
        """What to do with a node; None where the engine lacks it and no rule helps."""
        if not written and self._trusts(node, scope, engine) and self._same(node, opsets):
            return Fragment()
        if next(subgraphs(node), None) is not None and self._same(node, opsets):
            opsets = self.targets  # what is inside has been brought there
        single = single_node_model(node, scope, opset_imports(opsets), self._ir_version)
        if single is None:  # it cannot be shown by itself
            self.unseen = True
            return Fragment() if self._same(node, opsets) else None
        key = (engine.identity, written, single.SerializeToString(deterministic=True))
        if key not in self._memo:
            self._memo[key] = None  # a node that comes up again while it is rewritten leads nowhere
            self._memo[key] = self._solve(Site(single, self.targets.get("", 1)), engine, written=written)
        return self._memo[key]

    def _trusts(self, node: NodeProto, scope: Scope, engine: Engine) -> bool:
        """Whether a node of the model need not be looked at, by what it says itself."""
        if not isinstance(engine, Trusting) or engine.may_have_defect(node, self._facts):
            return False
        read = [scope.values.get(name, Value()) for name in node.input if name]
        return next(subgraphs(node), None) is None and not engine.may_have_integer_defect(node, read)

    def _same(self, node: NodeProto, opsets: Mapping[str, int]) -> bool:
        domain = canonical(node.domain)
        given = opsets.get(domain, 1)
        wanted = self.targets.setdefault(domain, given)
        return given == wanted or unchanged(node.op_type, domain, given, wanted)

    def _solve(self, site: Site, engine: Engine, *, written: bool) -> Fragment | None:
        self._patience.look()
        defect = self._why_not(site, engine, written=written)
        if defect is None:
            return Fragment()
        rules = RULES if written else (*RULES, *engine.rules)
        for rule in rules if is_valid(site.model) else ():
            if self._patience.over:
                return None
            if rule is convert_version and engine.ignores_opset and self._same(site.node, {site.domain: site.opset}):
                continue
            for body in rule(site):
                typed = infer(body)
                if self._graph(typed.graph, Scope({}, {}), opset_versions(typed)):
                    self.widened |= defect.wrong and rule is widen_types
                    return Fragment(tuple(typed.graph.node), rule.__name__, defect.words)
        logger.debug("no rule for %s: %s", site.model, defect.words)
        self._refused.append(site)
        return None

    def _why_not(self, site: Site, engine: Engine, *, written: bool) -> Defect | None:
        if not self._same(site.node, {site.domain: site.opset}):
            self.mixed = True
            changed = f"{operator_name(site.node)} changed between opset {site.opset} and {self.targets[site.domain]}"
            return Defect(changed)
        stamped = self._stamped(site)
        defect = engine.find_defect(Site(stamped, site.target), written=written)
        if defect is not None:
            return defect
        words = answer(engine, _without_hints(stamped))
        return Defect(words) if words is not None else None

    def _stamped(self, site: Site) -> ModelProto:
        """A node's model in the opsets that the engine gets."""
        stamped = ModelProto()
        stamped.CopyFrom(site.model)
        del stamped.opset_import[:]
        domains = {"", site.domain}
        stamped.opset_import.extend(opset_imports({d: v for d, v in self.targets.items() if d in domains}))
        return stamped

    def _ask_together(
        self, nodes: Sequence[NodeProto], scope: Scope, opsets: Mapping[str, int], engine: Engine, *, written: bool
    ) -> None:
        """Ask about several nodes in one compilation: those without a known defect, about each of which the engine would be asked."""
        if not isinstance(engine, TakesSeveral):
            return
        models = []
        for node in nodes:
            if next(subgraphs(node), None) is not None or canonical(node.domain) or not self._same(node, opsets):
                continue
            single = single_node_model(node, scope, opset_imports(opsets), self._ir_version)
            if single is None or (engine.identity, written, single.SerializeToString(deterministic=True)) in self._memo:
                continue
            stamped = self._stamped(Site(single, self.targets.get("", 1)))
            if engine.find_defect(Site(stamped, self.targets.get("", 1)), written=written) is None:
                models.append(_without_hints(stamped))
        ask_together(engine, models)

    def _instance(self, fragment: Fragment, node: NodeProto) -> list[NodeProto]:
        """The fragment's nodes between this node's inputs and outputs, all other names made unique."""
        self._count += 1
        prefix = f"{node.name or next(filter(None, node.output), node.op_type)}{self._marker}{self._count}/"
        names = {f"i{i}": name for i, name in enumerate(reads(node))}
        names.update({f"o{i}": name for i, name in enumerate(node.output) if name})
        made = [renamed(inner, lambda name: names.get(name, prefix + name)) for inner in fragment.nodes]
        for i, inner in enumerate(made):
            inner.name = f"{prefix}{inner.name or inner.op_type}{i}"
        return made


def _without_hints(model: ModelProto) -> ModelProto:
    """What an engine is asked about: a kernel is there or not, whatever the elements are."""
    for value in model.graph.input:
        value.ClearField("doc_string")
    return model


def _change(node: NodeProto, new: list[NodeProto], fragment: Fragment) -> Adaptation:
    operators = list(dict.fromkeys(operator_name(n) for n in new))
    shown = ", ".join(operators[:8]) + (f" and {len(operators) - 8} more" if len(operators) > 8 else "")
    output = next(iter(node.output), "")
    where = f"{operator_name(node)} {node.name!r}" if node.name else f"{operator_name(node)} (output {output!r})"
    return Adaptation(fragment.rule, where, f"written with {shown}", fragment.reason)
