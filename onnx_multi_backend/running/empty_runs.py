# SPDX-License-Identifier: Apache-2.0
"""Runs whose inputs have no elements, such as a batch of 0, where the engine gets results without elements wrong.

They run on the model prepared for their shapes: what has no elements is known then, and made without the engine's operators.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from onnx import GraphProto

from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.passes.input_shapes import with_input_shapes
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import InvalidModelError, OptionError, UnsupportedModelError
from onnx_multi_backend.models.given import given
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.running.recipe import Recipe, prepare_again

if TYPE_CHECKING:
    from onnx_multi_backend.running.prepared import PreparedModel

Shapes = Mapping[str, tuple[int, ...]]

#: Models that are kept at once; the one unused longest goes first.
_KEPT = 2
#: What a model that is prepared for one such run does without.
_LEFT_OUT = frozenset({"cache_dir", "input_example", "verify_weights"})


class EmptyRuns:
    """The models for the shapes of such runs. Safe from several threads.

    Parameters
    ----------
    recipe : Recipe
        How the model was prepared.
    target : Target
        What it was compiled for.
    """

    def __init__(self, recipe: Recipe, target: Target) -> None:
        self._recipe, self._target = recipe, target
        self._lock = Lock()
        self._wrong: dict[frozenset[tuple[str, int]], bool] = {}
        self._kept: OrderedDict[frozenset[tuple[str, tuple[int, ...]]], PreparedModel | None] = OrderedDict()

    def model_for(self, shapes: Shapes) -> PreparedModel | None:
        """The model for inputs of these shapes, by the user's names; None where the engine gets them right, or would refuse the model."""
        empty = frozenset((name, axis) for name, shape in shapes.items() for axis, size in enumerate(shape) if not size)
        with self._lock:
            if empty not in self._wrong:
                self._wrong[empty] = self._is_wrong(shapes)
            if not self._wrong[empty]:
                return None
            key = frozenset(shapes.items())
            if key not in self._kept:
                self._kept[key] = self._prepared(shapes)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def _is_wrong(self, shapes: Shapes) -> bool:
        """Whether a node that the engine gets wrong is known to make nothing."""
        wrong = self._target.wrong_when_empty
        try:
            loaded = load(given(self._recipe.source))
            if not wrong or not loaded.contents.has(wrong):
                return False
            model, _ = with_input_shapes(loaded.proto, shapes, loaded.label)
        except (
            InvalidModelError,
            OptionError,
        ):  # its file was changed meanwhile, or a shape contradicts the declared one: the engine tells
            return False
        return _makes_nothing(infer(model).graph, wrong)

    def _prepared(self, shapes: Shapes) -> PreparedModel | None:
        options = {name: value for name, value in self._recipe.options.items() if name not in _LEFT_OUT}
        try:
            return prepare_again(replace(self._recipe, options={**options, "input_shapes": dict(shapes)}))
        except UnsupportedModelError as error:
            logging.getLogger("onnx_multi_backend").info("inputs without elements run as they are: %s", error)
            return None


def _makes_nothing(graph: GraphProto, operators: frozenset[str]) -> bool:
    values = (*graph.value_info, *graph.output)
    empty = {
        v.name for v in values if any(d.HasField("dim_value") and not d.dim_value for d in v.type.tensor_type.shape.dim)
    }
    return any(
        (node.op_type in operators and not canonical(node.domain) and not empty.isdisjoint(node.output))
        or any(_makes_nothing(inner, operators) for inner in subgraphs(node))
        for node in graph.node
    )
