# SPDX-License-Identifier: Apache-2.0
"""A model that cannot be helped is refused in about the time that its engine takes to refuse it."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable

import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import Picky
from onnx_multi_backend.adapt import adapt
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.patience import Patience, unhurried
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines import compiling
from onnx_multi_backend.engines.ort import errors, target

ML = "ai.onnx.ml"


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
def test_a_refusal_takes_few_compilations(engine: type[omb.Preset], made: ModelProto, compilations: list[str]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match=r"com\.example\.Frob"):
        engine.prepare(made)
    assert len(compilations) < 50


def test_patience_lasts_until_it_is_lost() -> None:
    patience = Patience()
    _look(patience, 1000)
    assert not patience.over
    patience.lose()
    _look(patience, 10)
    assert not patience.over
    _look(patience, 100)
    assert patience.over
    with unhurried():
        assert not patience.over
    assert patience.over
    assert not patience.for_explaining().over


def test_each_way_of_asking_has_patience_of_its_own() -> None:
    patience = Patience()
    patience.lose("Frob")
    _look(patience, 100)
    patience.renew()
    assert not patience.over
    assert not patience.lost
    assert patience.hopeless == {"Frob"}


class Slow(Picky):
    """An engine that takes its time over each node, and counts them."""

    seconds = 0.0
    asked = 0

    @property
    def identity(self) -> Hashable:
        return id(self)  # two of them may differ in what they refuse

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        self.asked += 1
        _spend(self.seconds)
        found = super().find_defect(site, written=written)
        return None if found is None else found._replace(wrong=True)


def _encoders(count: int) -> ModelProto:
    """Different nodes that no rule can write in another way, and then one that a rule can."""
    nodes = [
        models.node(
            "LabelEncoder", [f"v{k}"], [f"v{k + 1}"], domain=ML, keys_floats=[math.nan, k], values_floats=[0.0, k + 1.0]
        )
        for k in range(count)
    ]
    nodes.append(models.node("Celu", [f"v{count}"], ["y"]))
    return models.model(nodes, [models.tensor("v0", [2])], [models.tensor("y", [2])], opsets={ML: 2})


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_a_slow_computer_is_no_reason_to_give_up_what_another_provider_runs(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(Slow, "seconds", seconds)
    model = _encoders(40)
    provider, anyone = Slow(["LabelEncoder", "Celu"]), Slow([])
    lowered = next(lower(adapt(model, provider.limits), provider, anyone))
    assert [change.pass_name for change in lowered.changes if "Celu" in change.node] == ["special_values"]
    assert [node.op_type for node in lowered.proto.graph.node].count("LabelEncoder") == 40


def test_what_nobody_runs_is_given_up_after_as_many_nodes_on_every_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for seconds in (0.0, 0.01):
        monkeypatch.setattr(Slow, "seconds", seconds)
        engine = Slow(["LabelEncoder", "Celu"])
        assert list(lower(adapt(_encoders(200), engine.limits), engine)) == []
        asked.append(engine.asked)
    assert asked[0] == asked[1] < 100


def test_nodes_that_differ_in_a_size_that_inference_did_not_know_are_asked_about_once() -> None:
    nodes = [models.node("NonZero", ["x"], [f"i{k}"]) for k in range(10)]
    nodes += [models.node("Neg", [f"i{k}"], [f"y{k}"]) for k in range(10)]
    outputs = [models.tensor(f"y{k}", [2, f"found{k}"], models.INT64) for k in range(10)]
    model = models.model(nodes, [models.tensor("x", [2, 3])], outputs)
    engine = Slow(["Frob"])
    assert list(lower(adapt(model, engine.limits), engine)) == []
    assert engine.asked < 15


def test_the_operator_that_the_engine_named_in_a_body_is_asked_about_first() -> None:
    """Softmax is one of the last nodes of the body of Attention."""
    inputs = [models.tensor(name, [2, 3, 4, 8]) for name in "QKV"]
    made = models.one_node("Attention", inputs, [models.tensor("y", [2, 3, 4, 8])])
    made.opset_import[0].version = 23
    asked = []
    for complaint in ("", "Failed operations: -- Softmax-23 with a message: no kernel"):
        engine, patience = Slow(["Attention", "Softmax", "ReduceSum"]), Patience()
        patience.blame(complaint)
        assert list(lower(adapt(made, engine.limits), engine, patience=patience)) == []
        asked.append(engine.asked)
    assert asked[1] < asked[0] / 2


def test_an_invalid_model_is_refused_before_its_nodes_are_asked_about(
    openvino_ep: type[omb.Preset], compilations: list[str]
) -> None:
    """A provider computes this form of Attention wrongly: its body, a hundred nodes, would be asked about one by one."""
    kinds = {"Q": models.FLOAT, "K": TensorProto.UINT4, "V": models.FLOAT}
    inputs = [models.tensor(name, [2, 3, 4, 8], kind) for name, kind in kinds.items()]
    outputs = [models.tensor("y", [2, 3, 4, 8])]
    made = models.one_node("Attention", inputs, outputs, is_causal=1, softcap=2.0)
    made.opset_import[0].version = 24
    with pytest.raises(omb.InvalidModelError, match="unsupported type"):
        openvino_ep.prepare(made)
    assert compilations.count("show") < 15


def _look(patience: Patience, times: int) -> None:
    for _ in range(times):
        patience.look()


def _spend(seconds: float) -> None:
    """Wall-clock time and CPU time both."""
    started = time.process_time()
    while time.process_time() - started < seconds:
        pass


def test_nothing_is_written_in_another_way_where_the_memory_is_too_small(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other node would need less of it."""
    model = models.one_node("Relu", [models.tensor("x", [2])], [models.tensor("y", [2])])

    def no_memory(self: object, payload: object, providers: object) -> None:
        raise errors.all_errors()[0]("Exception during initialization: std::bad_alloc")

    def rewritten(*given: object, **named: object) -> None:
        raise AssertionError

    monkeypatch.setattr(target.OrtTarget, "_session", no_memory)
    monkeypatch.setattr(compiling, "build_rewritten", rewritten)
    with pytest.raises(omb.UnsupportedModelError, match="a tensor is too large. std::bad_alloc. Correct its sizes"):
        ort_cpu.prepare(model)
