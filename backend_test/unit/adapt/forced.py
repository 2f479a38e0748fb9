# SPDX-License-Identifier: Apache-2.0
"""An engine that refuses some operators more than it has to, so that a rule is put to work on it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from onnx_multi_backend.adapt import Adaptation, Limits, adapt
from onnx_multi_backend.adapt.engine import Doubt
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.devices import Device
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.graph_walk import all_nodes


class Picky:
    """ONNX Runtime's CPU provider without some operators.

    Parameters
    ----------
    operators : iterable of str
    forms : callable, optional
        Tells which nodes of these operators are refused; by default all.
    """

    any_opset = False

    def __init__(self, operators: Iterable[str], forms: Any = lambda site: True) -> None:
        self._target = OrtTarget("OrtCpu", ((providers.CPU, {}),), Device("CPU"))
        self._operators = frozenset(operators)
        self._forms = forms

    @property
    def limits(self) -> Limits:
        return self._target.limits

    @property
    def identity(self) -> Hashable:
        return id(self)

    def distrusts(self, site: Site) -> Doubt | None:
        if site.op_type in self._operators and self._forms(site):
            return Doubt(f"{site.op_type} is refused for the test")
        return self._target.distrusts(site)

    def accepts(self, model: ModelProto) -> str | None:
        return self._target.accepts(model)


def rewritten(
    model: ModelProto, *operators: str, forms: Any = lambda site: True
) -> tuple[ModelProto, list[Adaptation]]:
    """The model without these operators, and how that was done."""
    engine = Picky(operators, forms)
    lowered = next(lower(adapt(model, engine.limits), engine))
    left = {n.op_type for n in all_nodes(lowered.proto)} & set(operators)
    assert not left or forms is not Picky.__init__.__defaults__[0], left  # type: ignore[index]
    return lowered.proto, [c for c in lowered.changes if c.pass_name not in ("ir_version", "opset_version")]


def computed(model: ModelProto, *inputs: Any) -> list[Any]:
    """What ONNX Runtime computes of a model that needs nothing more."""
    return list(omb.OrtCpuBackend.prepare(model).run(list(inputs)))


def expected(model: ModelProto, *inputs: Any) -> list[Any]:
    """What ONNX's reference evaluator computes."""
    names = [i.name for i in model.graph.input]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))
