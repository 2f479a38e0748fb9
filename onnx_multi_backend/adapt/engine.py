# SPDX-License-Identifier: Apache-2.0
"""An engine, as the rewriting asks it about one node at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.site import Rule, Site

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")


class Defect(NamedTuple):
    """Why an engine's own form of a node is not used.

    Attributes
    ----------
    words : str
    wrong : bool
        The form's ordinary values come out wrong, without an error: no result is better than this one. Otherwise only
        some values do, or the result is less exact than it could be, or the engine fails with an error when it runs.
    provider : str
        The execution provider that it is about, as `NodePlacement` names it; empty for every one.
    deadly : bool
        Compiling the form may end the process: the engine is not queried about it.
    minor : bool
        The form stays in a model that needs no other change, since one that is rewritten takes longer to prepare.
    grouped : bool
        A provider that leaves the form to another when it is alone takes it in a group of nodes.
    wide : bool
        It is about integers that int32 does not hold: what is written for these is wrong on a provider that computes in int32.
    """

    words: str
    wrong: bool = False
    provider: str = ""
    deadly: bool = False
    minor: bool = False
    grouped: bool = False
    wide: bool = False


class Engine(Protocol):
    """An engine that can be asked about one node."""

    @property
    def limits(self) -> Limits:
        """What it accepts."""

    @property
    def ignores_opset(self) -> bool:
        """Whether another opset is not worth a try."""

    @property
    def identity(self) -> Hashable:
        """Engines of one identity answer `accepts` alike."""

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        """Rules for what this engine alone computes wrongly, which are tried after the others."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules for this engine alone that are tried last, and for none of the nodes that rules write."""

    def accepts(self, model: ModelProto) -> str | None:
        """None when it takes a model of one node, else its complaint."""

    def may_have_integer_defect(self, node: NodeProto, read: list[Value]) -> bool:
        """Whether `find_defect` may find a defect of a node because of the integers that it reads."""

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        """Why the engine computes a node wrongly, or refuses it only when it runs; None for one that it gets right.

        Parameters
        ----------
        site : Site
        written : bool
            A rule wrote the node. Then NaN, infinities and the like have to come out right as well: what a rule makes of
            the user's node must not depend on how a kernel or a processor treats them.
        """


@runtime_checkable
class TakesSeveral(Protocol):
    """An engine that can be asked about several nodes at once."""

    @property
    def identity(self) -> Hashable:
        """As an `Engine`'s."""

    def accepts_all(self, models: Sequence[ModelProto]) -> bool:
        """Whether it takes each of some models of one node; False where that is not certain."""


@dataclass(frozen=True)
class Unasked:
    """An engine that is not queried about nodes: only those that it computes wrongly count as lacking.

    A query about a node costs as much as compiling it. Where the whole is compiled next, that answers for all nodes at once.

    Parameters
    ----------
    engine : Engine
    """

    engine: Engine

    @property
    def limits(self) -> Limits:
        return self.engine.limits

    @property
    def ignores_opset(self) -> bool:
        return self.engine.ignores_opset

    @property
    def identity(self) -> Hashable:
        return type(self), self.engine.identity

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        return self.engine.own_rules

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.engine.rules

    def accepts(self, model: ModelProto) -> str | None:
        return None

    def may_have_integer_defect(self, node: NodeProto, read: list[Value]) -> bool:
        return self.engine.may_have_integer_defect(node, read)

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        return self.engine.find_defect(site, written=written)


@dataclass(frozen=True)
class Trusting(Unasked):
    """An engine that takes a model as a whole: its nodes need no other opset, and most of them need not even be looked at.

    Parameters
    ----------
    engine : Engine
    may_have_defect : callable
        Decides from a node, and what a model says by itself, whether it may be computed wrongly.
    found : frozenset of str, optional
        What the nodes make that it computes wrongly, where the model has been looked through already.
    """

    may_have_defect: Callable[[NodeProto, Facts], bool]
    found: frozenset[str] | None = None

    @property
    def ignores_opset(self) -> bool:
        return True

    def trusts(self, node: NodeProto, facts: Facts, read: list[Value]) -> bool:
        """Whether a node of the model need not be looked at, by what it says itself and by the integers that it reads."""
        if self.found is not None:
            return self.found.isdisjoint(node.output)
        return not self.may_have_defect(node, facts) and not self.may_have_integer_defect(node, read)


#: What engines said of models of one node, the last ones: asking costs as much as compiling. ONNX's own suite asks
#: the OpenVINO execution provider 7,000 times.
_answers: OrderedDict[tuple[Hashable, bytes], str | None] = OrderedDict()
_MOST_ANSWERS = 32_768

#: Fewer models are not asked about together: a refusal of the group would not say which.
_FEWEST = 4


def answer(engine: Engine, model: ModelProto, digest: bytes | None = None) -> str | None:
    """What `accepts` of an engine says of a model of one node; the same question is asked once."""
    return kept(_answers, (engine.identity, digest or digest_of(model)), lambda: engine.accepts(model))


def ask_together(engine: Engine, models: Mapping[bytes, ModelProto]) -> None:
    """Keep the answer for those of several models of one node, by digest, that an engine takes all at once.

    Compiling a model costs OpenVINO 15 ms, and each node of it less than one: most nodes are taken, and these need not be asked about one
    by one. Where it refuses a group, a half of it may do.
    """
    if not isinstance(engine, TakesSeveral):
        return
    keys = {(engine.identity, digest): model for digest, model in models.items()}
    unknown = [(key, model) for key, model in keys.items() if key not in _answers]
    groups = [unknown]
    while groups:
        group = groups.pop()
        if len(group) < _FEWEST:
            continue
        if engine.accepts_all([model for _, model in group]):
            for key, _ in group:
                kept(_answers, key, lambda: None)
            continue
        half = len(group) // 2
        groups += [group[:half], group[half:]]


def kept(answers: OrderedDict[_Key, _Answer], key: _Key, ask: Callable[[], _Answer]) -> _Answer:
    """An answer that is asked for once, as long as it is among the last ones."""
    if key not in answers:
        answers[key] = ask()
        while len(answers) > _MOST_ANSWERS:
            answers.popitem(last=False)
    return answers[key]


def digest_of(model: ModelProto | bytes) -> bytes:
    """What stands for a small model, or for its bytes, among others."""
    import hashlib

    data = model if isinstance(model, bytes) else model.SerializeToString(deterministic=True)
    return hashlib.blake2b(data, digest_size=16).digest()
