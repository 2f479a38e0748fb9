# SPDX-License-Identifier: Apache-2.0
"""The way of a model through the package while it is prepared: down the layers, and seldom up again.

Counted are the pairs of modules of which one calls the other and hands over the model, a part of it, or an object that holds it. A pair
is a climb where the callee stands in a higher layer than the caller (the layers of import-linter, in pyproject.toml), and a return where
the callee is at work already, further out among the calls in progress.
"""

from __future__ import annotations

import sys
import tomllib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.adapt import engine

PACKAGE = "onnx_multi_backend."
#: Attributes of attributes that are looked through for a model.
DEPTH = 3

Pairs = set[tuple[str, str]]


def layers() -> dict[str, int]:
    """The place of each top-level module, the highest first."""
    file = Path(__file__).parents[2] / "pyproject.toml"
    contracts = tomllib.loads(file.read_text())["tool"]["importlinter"]["contracts"]
    listed = next(c["layers"] for c in contracts if c["name"] == "imports point down")
    return {name: place for place, layer in enumerate(listed) for name in layer.split(" : ")}


def holds_model(value: Any, depth: int = 0) -> bool:
    if isinstance(value, ModelProto | GraphProto | NodeProto):
        return True
    if isinstance(value, list | tuple):
        return depth < DEPTH and any(holds_model(item, depth + 1) for item in value[:1])
    own = depth < DEPTH and type(value).__module__.startswith(PACKAGE)
    return own and any(holds_model(held, depth + 1) for held in list(getattr(value, "__dict__", {}).values()))


def counted(prepare: Callable[[], object]) -> tuple[Pairs, Pairs]:
    """The climbs and the returns."""
    place = layers()
    climbs: Pairs = set()
    returns: Pairs = set()

    def module(frame: FrameType) -> str:
        name = str(frame.f_globals.get("__name__", ""))
        return name[len(PACKAGE) :] if name.startswith(PACKAGE) else ""

    def at_work(frame: FrameType | None) -> list[str]:
        found = []
        while frame is not None:
            found += [name] if (name := module(frame)) else []
            frame = frame.f_back
        return found

    def called(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not (callee := module(frame)):
            return
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not any(holds_model(frame.f_locals.get(name)) for name in names):
            return
        caller, *others = at_work(frame.f_back) or [callee]
        if caller == callee:
            return
        if place[callee.partition(".")[0]] < place[caller.partition(".")[0]]:
            climbs.add((caller, callee))
        if callee in others:
            returns.add((caller, callee))

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        prepare()
    finally:
        sys.setprofile(before)
    return climbs, returns


def _net(op_type: str, kind: int = TensorProto.FLOAT, **attributes: Any) -> ModelProto:
    nodes = [models.node("Relu", ["x"], ["r"]), models.node(op_type, ["r"], ["y"], **attributes)]
    return models.model(nodes, [models.tensor("x", [3, 3], kind)], [models.tensor("y", None, kind)])


def _resize() -> ModelProto:
    node = models.node("Resize", ["x", "", "scales"], ["y"], mode="cubic", exclude_outside=1)
    scales = {"scales": np.float32([1, 1, 0.6, 0.7])}
    shape = [1, 2, "H", "W"]
    return models.model([node], [models.tensor("x", shape)], [models.tensor("y", None)], initializers=scales)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(_net("Tanh"), id="a model that the engine takes"),
        pytest.param(_net("HardSigmoid", alpha=0.0), id="a form that OpenVINO computes wrongly"),
        pytest.param(_resize(), id="a form that becomes many nodes"),
        pytest.param(_net("Det"), id="an operator that OpenVINO lacks"),
    ],
)
def test_the_model_seldom_climbs_and_seldom_returns(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, model: onnx.ModelProto
) -> None:
    openvino.prepare(model)  # imports what is imported late
    monkeypatch.setattr(engine, "_answers", OrderedDict())
    climbs, returns = counted(lambda: openvino.prepare(model, cache_dir=False))
    assert climbs, "nothing was counted: OpenVINO's table is asked about each model"
    assert len(climbs) <= 4, climbs
    assert len(returns) <= 5, returns
