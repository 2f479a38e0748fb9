# SPDX-License-Identifier: Apache-2.0
"""An engine that refuses some operators more than it has to, so that a rule is put to work on it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from onnx_multi_backend.adapt import Adaptation, Limits, adapt
from onnx_multi_backend.adapt.engine import Defect, Unasked, answer
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.site import Rule, Site
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.graph_walk import all_nodes

#: Tells which nodes of the operators are refused.
Forms = Callable[[Site], bool]

ORT_CPU = OrtTarget("OrtCpu", ((providers.CPU, {}),), Device("CPU"))
OPENVINO = OpenvinoTarget("Openvino", Device("CPU"), {"INFERENCE_PRECISION_HINT": "f32"})


class Picky:
    """An engine without some operators.

    Parameters
    ----------
    operators : iterable of str
    forms : callable, optional
        Tells which nodes of these operators are refused; by default all.
    target : OrtTarget or OpenvinoTarget, optional
        The engine; ONNX Runtime's CPU provider by default.
    """

    def __init__(
        self, operators: Iterable[str], forms: Forms | None = None, target: OrtTarget | OpenvinoTarget = ORT_CPU
    ) -> None:
        self._target = target
        self._operators = frozenset(operators)
        self._forms = forms

    @property
    def ignores_opset(self) -> bool:
        return self._target.ignores_opset

    @property
    def limits(self) -> Limits:
        return self._target.limits

    @property
    def identity(self) -> Hashable:
        return self._target.identity  # it refuses more by its defects; what it accepts is the same

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        return self._target.own_rules

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._target.rules

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        if site.op_type in self._operators and (self._forms is None or self._forms(site)):
            return Defect(f"{site.op_type} is refused for the test")
        return self._target.find_defect(site, written=written)

    def accepts(self, model: ModelProto) -> str | None:
        return self._target.accepts(model)


def rewritten(
    model: ModelProto,
    *operators: str,
    forms: Forms | None = None,
    target: OrtTarget | OpenvinoTarget = ORT_CPU,
) -> tuple[ModelProto, list[Adaptation]]:
    """The model without these operators, and how that was done."""
    engine = Picky(operators, forms, target)
    adapted = adapt(model, engine.limits)
    # As in `prepare`, the pieces are shown to the engine together, and one by one where it refuses that: a tenth of the compiles.
    lowered = next(lower(adapted, engine, Unasked(engine)), None)
    if lowered is None or answer(engine, lowered.proto) is not None:
        lowered = next(lower(adapted, engine))
    left = {n.op_type for n in all_nodes(lowered.proto)} & set(operators)
    assert not left or forms is not None, left
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
