# SPDX-License-Identifier: Apache-2.0
"""One node of a graph, as an engine is queried about it."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Mapping

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.engine import Defect, Engine, TakesSeveral, answer, ask_together, digest_of
from onnx_multi_backend.adapt.same_operator import is_written_for
from onnx_multi_backend.adapt.single_node import Scope, opset_imports, single_node_model
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.targets import Targets
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, operator_name, subgraphs


class ShownNode:
    """A node with all that is made of it to query an engine; each part is made once, when it is first needed.

    Attributes
    ----------
    node : onnx.NodeProto
        What its subgraphs hold has to be rewritten before its model is asked for.
    scope : Scope
        Of the graph that it stands in.
    opsets : mapping of str to int
        Those that it is written in.
    targets : Targets
    holds_graphs : bool
    """

    def __init__(
        self, node: NodeProto, scope: Scope, opsets: Mapping[str, int], targets: Targets, ir_version: int
    ) -> None:
        self.node = node
        self.scope = scope
        self.opsets = opsets
        self.targets = targets
        self.holds_graphs = next(subgraphs(node), None) is not None
        self._ir_version = ir_version
        self._is_cut = False
        self._model: ModelProto | None = None
        self._key = b""
        self._defects: dict[tuple[int, bool], Defect | None] = {}

    @functools.cached_property
    def domain(self) -> str:
        """The operator's domain; empty for the default one."""
        return canonical(self.node.domain)

    @functools.cached_property
    def keeps_meaning(self) -> bool:
        """Whether it means the same in the opsets that the engine is to get."""
        return self.targets.keep(self.node, self.opsets)

    @functools.cached_property
    def is_rewritten_inside(self) -> bool:
        """Whether what its subgraphs hold is written for the opsets that the engine is to get."""
        inner = (node for graph in subgraphs(self.node) for node in nodes_in(graph.node))
        return not self.holds_graphs or is_written_for(inner, self.targets.versions)

    @property
    def model(self) -> ModelProto | None:
        """The model of this node alone, in its own opsets; None where it cannot be shown by itself."""
        if not self._is_cut:  # cached by hand, as the key is: until Python 3.12 a `cached_property` takes a lock
            self._model = self._cut()
            self._is_cut = True
        return self._model

    def _cut(self) -> ModelProto | None:
        opsets = self.opsets
        if self.holds_graphs and self.keeps_meaning:
            if not self.is_rewritten_inside:
                return None
            opsets = self.targets.versions
        return single_node_model(self.node, self.scope, opset_imports(opsets), self._ir_version)

    @functools.cached_property
    def site(self) -> Site:
        """What a rule looks at. Only where there is a model."""
        assert self.model is not None
        return Site(self.model, self.targets.default)

    @property
    def key(self) -> bytes:
        """The same for nodes that an engine and the rules treat alike. Only where there is a model."""
        if not self._key:
            assert self.model is not None
            self._key = self.model.SerializeToString(deterministic=True)
        return self._key

    @functools.cached_property
    def stamped(self) -> Site:
        """The same in the opsets that the engine is to get."""
        imports = self.targets.imports(self.domain)
        if list(self.site.model.opset_import) == imports:
            return self.site
        model = ModelProto()
        model.CopyFrom(self.site.model)
        del model.opset_import[:]
        model.opset_import.extend(imports)
        return Site(model, self.site.target)

    @functools.cached_property
    def question(self) -> ModelProto:
        """What an engine is queried about: without hints, as a kernel is there or not, whatever the elements are."""
        model = self.stamped.model
        if not any(value.doc_string for value in model.graph.input):
            return model
        plain = ModelProto()
        plain.CopyFrom(model)
        for value in plain.graph.input:
            value.ClearField("doc_string")
        return plain

    @functools.cached_property
    def digest(self) -> bytes:
        """What stands for the question among others."""
        return digest_of(self.key if self.question is self.model else self.question)

    def memo_key(self, engine: Engine, *, written: bool) -> tuple[int, bool, bytes]:
        """The same where what is done with a node is the same, as long as the engine lives."""
        return id(engine), written, self.key

    def defect(self, engine: Engine, *, written: bool) -> Defect | None:
        """What is known to be wrong with the engine's form of it."""
        asked = (id(engine), written)
        if asked not in self._defects:
            self._defects[asked] = engine.find_defect(self.stamped, written=written)
        return self._defects[asked]

    def why_not(self, engine: Engine, *, written: bool) -> Defect | None:
        """Why the engine does not get it as it is; None where it does."""
        if not self.keeps_meaning:
            wanted = self.targets.versions[self.domain]
            return Defect(f"{operator_name(self.node)} changed between opset {self.site.opset} and {wanted}")
        if (defect := self.defect(engine, written=written)) is not None:
            return defect
        words = answer(engine, self.question, self.digest)
        return Defect(words) if words is not None else None

    def runs_on(self, engine: Engine) -> bool:
        """Whether an engine takes it, and computes it rightly."""
        return self.model is not None and self.why_not(engine, written=False) is None

    def may_stay(self, engine: Engine) -> bool:
        """Whether an engine takes it as it is, and computes it wrongly for some values only: no model is refused for that."""
        if self.model is None or not self.keeps_meaning:
            return False
        defect = self.defect(engine, written=False)
        return defect is not None and not defect.wrong and answer(engine, self.question, self.digest) is None


def ask_about(group: Iterable[ShownNode], engine: Engine, *, written: bool, known: Container[object]) -> None:
    """Ask about several nodes in one compilation: those without a known defect, about each of which the engine would be asked.

    Parameters
    ----------
    known : container
        The `memo_key` of those that it need not be asked about.
    """
    if not isinstance(engine, TakesSeveral):
        return
    models = {}
    for shown in group:
        if shown.holds_graphs or shown.domain or not shown.keeps_meaning or shown.model is None:
            continue
        if shown.memo_key(engine, written=written) in known:
            continue
        if shown.defect(engine, written=written) is None:
            models[shown.digest] = shown.question
    ask_together(engine, models)
