# SPDX-License-Identifier: Apache-2.0
"""An engine, as the rewriting asks it about one node at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

from onnx import ModelProto

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.single_node import side_by_side
from onnx_multi_backend.adapt.site import Site


class Doubt(NamedTuple):
    """Why an engine's own form of a node is not to be trusted.

    Attributes
    ----------
    words : str
    wrong : bool
        The form's ordinary values come out wrong, and nothing tells so: better no result than this one. Otherwise only
        some values do, or the result is less exact than it could be, or the engine itself says no when it runs.
    provider : str
        The execution provider that it is about, as `NodePlacement` names it; empty for every one.
    """

    words: str
    wrong: bool = False
    provider: str = ""


class Engine(Protocol):
    """An engine that can be asked about one node."""

    @property
    def limits(self) -> Limits:
        """What it accepts."""

    @property
    def any_opset(self) -> bool:
        """Whether another opset is not worth a try."""

    @property
    def identity(self) -> Hashable:
        """Engines of one identity answer `accepts` alike."""

    @property
    def slow(self) -> bool:
        """Whether an answer of `accepts` takes long, and hardly longer for many nodes than for one."""

    def accepts(self, model: ModelProto) -> str | None:
        """None when it takes every node of a small model, else its complaint."""

    def distrusts(self, site: Site) -> Doubt | None:
        """Why the engine computes a node wrongly, or refuses it only when it runs; None for one that it gets right."""


#: What engines said of models of one node, the last ones: asking costs as much as compiling.
_answers: OrderedDict[tuple[Hashable, bytes], str | None] = OrderedDict()
_MOST_ANSWERS = 4096

#: So many models that are not taken together are asked about one by one.
_FEW = 3


def answer(engine: Engine, model: ModelProto) -> str | None:
    """What `accepts` of an engine says of a model of one node; the same question is asked once."""
    key = _key(engine, model)
    if key not in _answers:
        _keep(key, engine.accepts(model))
    return _answers[key]


def ask_at_once(engine: Engine, models: Sequence[ModelProto]) -> None:
    """Ask about models of one node side by side, so that `answer` knows those that are taken; the others it asks alone."""
    unknown = {key: model for model in models if (key := _key(engine, model)) not in _answers}
    if len(unknown) < 2:
        return
    if engine.accepts(side_by_side(list(unknown.values()))) is None:
        for key in unknown:
            _keep(key, None)
    elif len(unknown) > _FEW:
        asked = list(unknown.values())
        half = len(asked) // 2
        ask_at_once(engine, asked[:half])
        ask_at_once(engine, asked[half:])


def _key(engine: Engine, model: ModelProto) -> tuple[Hashable, bytes]:
    return engine.identity, model.SerializeToString(deterministic=True)


def _keep(key: tuple[Hashable, bytes], said: str | None) -> None:
    _answers[key] = said
    while len(_answers) > _MOST_ANSWERS:
        _answers.popitem(last=False)
