# SPDX-License-Identifier: Apache-2.0
"""A model that cannot be helped is refused in about the time that its engine takes to refuse it."""

from __future__ import annotations

import time

import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.adapt.patience import Patience, unhurried


def _unknown(*, different: int, others: int = 0) -> ModelProto:
    """Nodes that each differ from the others, and nodes of an operator that no engine has."""
    nodes = [models.node("LeakyRelu", [f"v{k}"], [f"v{k + 1}"], alpha=k / 10_000, name=f"l{k}") for k in range(others)]
    names = [f"u{k}" for k in range(different)]
    nodes += [
        models.node("Frob", [f"v{others}"], [name], domain="com.example", k=k, name=name)
        for k, name in enumerate(names)
    ]
    outputs = [models.tensor(name) for name in names]
    return models.model(nodes, [models.tensor("v0")], outputs, opsets={"com.example": 1})


@pytest.mark.parametrize("made", [_unknown(different=400), _unknown(different=1, others=3000)])
def test_a_refusal_does_not_take_long(engine: type[omb.Preset], made: ModelProto) -> None:
    engine.prepare(models.relu())  # the engine is loaded
    started = time.process_time()
    with pytest.raises(omb.UnsupportedModelError, match=r"com\.example\.Frob"):
        engine.prepare(made)
    assert time.process_time() - started < 2.5


def test_patience_lasts_until_it_is_lost() -> None:
    patience = Patience()
    assert not patience.over
    patience.lose()
    assert not patience.over
    _spend(0.5)
    assert patience.over
    with unhurried():
        assert not patience.over
    assert patience.over
    assert not patience.for_explaining().over


def test_patience_is_as_long_as_the_engine_takes() -> None:
    patience = Patience()
    with patience.engine_asked():
        _spend(0.4)
    patience.lose()
    _spend(0.5)
    assert not patience.over
    _spend(0.4)
    assert patience.over


def _spend(seconds: float) -> None:
    """Wall-clock time and CPU time both."""
    started = time.process_time()
    while time.process_time() - started < seconds:
        pass
