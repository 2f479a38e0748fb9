# SPDX-License-Identifier: Apache-2.0
"""Backends on ONNX's own evaluator whose behaviour is chosen by operator, one operator for each label."""

from __future__ import annotations

import importlib
import unittest
from types import ModuleType
from typing import Any, NamedTuple

import onnx.backend.test.loader
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
from onnx.reference import ReferenceEvaluator

from onnx_multi_backend.errors import UnsupportedModelError


class Node(NamedTuple):
    name: str
    op_type: str
    domain: str
    provider: str


class Adaptation(NamedTuple):
    pass_name: str
    node: str
    change: str
    reason: str


class PlainRep(BackendRep):
    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.session = ReferenceEvaluator(model)

    @property
    def operator(self) -> str:
        return str(self.model.graph.node[0].op_type)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        names = [i.name for i in self.model.graph.input]
        return tuple(self.session.run(None, dict(zip(names, inputs, strict=False))))


class PlainBackend(Backend):
    """A backend as others write them: nothing is known but the results."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return PlainRep(model)


class TalkingRep(PlainRep):
    """A prepared model that tells where its nodes run, with one behaviour for each operator."""

    provider = "ToyEP"

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        return (Adaptation("clamp_ir", "", "IR 14 -> 13", "too new"),) if self.operator == "Neg" else ()

    def placement(self) -> tuple[Node, ...]:
        if self.operator == "Erf":
            return ()
        provider = "CPUExecutionProvider" if self.operator == "Sign" else self.provider
        return (Node("n0", self.operator, "", provider),)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        if self.operator == "Ceil":
            raise UnsupportedModelError("no Ceil for this shape")
        if self.operator == "Cos":
            raise BackendIsNotSupposedToImplementIt("no Cos at run")
        outputs = super().run(inputs)
        return tuple(o + 1 for o in outputs) if self.operator == "Tan" else outputs


class TalkingBackend(PlainBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        match model.graph.node[0].op_type:
            case "Floor":
                raise UnsupportedModelError("the toy has no Floor")
            case "Round":
                raise unittest.SkipTest("Round on a rainy day")
            case "Sin":
                raise BackendIsNotSupposedToImplementIt("no Sin")
            case "Exp":
                raise ValueError("exploded")
        return TalkingRep(model)


def generate_only(*operators: str) -> None:
    """Make ONNX generate the node cases of a few operators only, for a test that starts processes."""

    def import_some(package: ModuleType) -> None:
        for operator in operators:
            importlib.import_module(f"{package.__name__}.{operator}")

    vars(onnx.backend.test.loader)["import_recursive"] = import_some
