# SPDX-License-Identifier: Apache-2.0
"""Cases are ONNX's, and each gets the label of what really happened."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto
from onnx.backend.test import BackendTest

from backend_test.unit.conformance.toys import Node, PlainBackend, PlainRep, TalkingBackend, TalkingRep
from onnx_multi_backend.conformance import CaseResult, Label, Suite


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite(TalkingBackend)


def test_the_cases_are_the_stock_runners_and_of_the_asked_devices_only(suite: Suite) -> None:
    stock = {name for items in BackendTest(PlainBackend)._test_items.values() for name in items}
    assert {c.name for c in suite.cases} == {n for n in stock if n.endswith("_cpu")}
    both = Suite(PlainBackend, devices=("CPU", "CUDA"))
    assert {c.name for c in both.cases} == stock
    assert {c.kind for c in suite.cases} == {"node", "real", "simple", "pytorch-converted", "pytorch-operator"}


@pytest.mark.parametrize(
    ("name", "label", "reason"),
    [
        ("test_abs_cpu", Label.NATIVE, ""),
        ("test_erf_cpu", Label.NATIVE, "all nodes folded at load"),
        ("test_neg_cpu", Label.ADAPTED, "clamp_ir"),
        ("test_sign_cpu", Label.FALLBACK, "Sign 'n0' on CPUExecutionProvider"),
        ("test_floor_cpu", Label.UNSUPPORTED, "the toy has no Floor"),
        ("test_ceil_cpu", Label.UNSUPPORTED, "no Ceil for this shape"),
        ("test_round_cpu", Label.SKIP, "Round on a rainy day"),
        ("test_sin_cpu", Label.SKIP, "no Sin"),
        ("test_cos_cpu", Label.SKIP, "no Cos at run"),
        ("test_tan_cpu", Label.FAIL, ""),
        ("test_exp_cpu", Label.FAIL, ""),
    ],
)
def test_a_case_gets_the_label_of_what_happened(suite: Suite, name: str, label: Label, reason: str) -> None:
    result = suite.run(name)
    assert (result.label, result.reason) == (label, reason)
    assert (result.backend, result.name, result.kind) == ("Talking", name, "node")
    assert result.duration_ms > 0
    assert bool(result.error) == (label == Label.FAIL)


def test_a_failure_keeps_its_type_and_message_and_where_it_ran(suite: Suite) -> None:
    assert suite.run("test_exp_cpu").error == "ValueError: exploded"
    wrong = suite.run("test_tan_cpu")
    assert wrong.error.startswith("AssertionError: ")
    assert [n.provider for n in wrong.placement] == ["ToyEP"]


def test_the_traceback_of_a_failure_is_in_the_debug_log(suite: Suite, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="onnx_multi_backend.conformance"):
        suite.run("test_exp_cpu")
    assert "Traceback" in caplog.text


def test_a_backend_that_does_not_tell_passes_without_a_claim() -> None:
    suite = Suite(PlainBackend, name="plain")
    result = suite.run("test_abs_cpu")
    assert (result.backend, result.label, result.placement) == ("plain", Label.PASS, ())


def test_a_placement_that_cannot_be_told_fails_the_case() -> None:
    class BrokenRep(TalkingRep):
        def placement(self) -> tuple[Node, ...]:
            raise RuntimeError("lost")

    class Broken(PlainBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PlainRep:
            return BrokenRep(model)

    assert Suite(Broken).run("test_abs_cpu").error == "RuntimeError: lost"


def prepares(rep: type[PlainRep]) -> type[PlainBackend]:
    class Preparing(PlainBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PlainRep:
            return rep(model)

    return Preparing


@pytest.mark.parametrize(
    "words", [{"placement": "gpu0"}, {"adaptations": None}, {"provider": "me", "placement": "gpu0"}, {"provider": "me"}]
)
def test_a_foreign_model_may_use_the_same_words_for_other_things(words: dict[str, Any]) -> None:
    rep = type("ForeignRep", (PlainRep,), words)
    assert Suite(prepares(rep)).run("test_abs_cpu").label == Label.PASS


def test_a_backend_that_overwrites_its_inputs_does_not_overwrite_what_is_expected() -> None:
    class Zeroing(PlainRep):
        def run(self, inputs: Any, **kwargs: Any) -> Any:
            for array in inputs:
                array[...] = 0
            return inputs

    suite = Suite(prepares(Zeroing))
    assert [suite.run("test_identity_cpu").label for _ in range(2)] == [Label.FAIL, Label.FAIL]
    assert Suite(PlainBackend).run("test_identity_cpu").label == Label.PASS


def test_a_device_the_backend_lacks_skips_with_the_reason() -> None:
    result = Suite(PlainBackend, devices=("CUDA",)).run("test_abs_cuda")
    assert (result.label, result.reason) == (Label.SKIP, "Backend doesn't support device CUDA")


def test_is_compatible_is_obeyed_unless_prepare_can_explain_itself() -> None:
    class Choosy(PlainBackend):
        @classmethod
        def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
            return False

    class Explaining(Choosy):
        @classmethod
        def compatibility(cls, model: ModelProto, device: str | None = None) -> bool:
            return False

    name = "test_single_relu_model_cpu"
    assert Suite(Choosy).run(name).label == Label.SKIP
    assert Suite(Explaining).run(name).label == Label.PASS


def test_options_reach_prepare() -> None:
    class Strict(PlainBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PlainRep:
            assert (device, kwargs) == ("CPU", {"level": 3})
            return PlainRep(model)

    assert Suite(Strict, options={"level": 3}).run("test_abs_cpu").label == Label.PASS


def test_a_backend_that_changes_its_model_harms_no_other() -> None:
    class Vandal(PlainBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PlainRep:
            model.graph.node[0].op_type = "Neg"
            return PlainRep(model)

    assert Suite(Vandal).run("test_abs_cpu").label == Label.FAIL
    assert Suite(PlainBackend).run("test_abs_cpu").label == Label.PASS


def test_light_models_write_nothing_that_another_process_may_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    monkeypatch.delenv("ONNX_MODELS", raising=False)
    folders = []

    class Watching(PlainBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PlainRep:
            folders.append(os.environ["ONNX_MODELS"])
            raise ValueError("enough")

    suite = Suite(Watching)
    for _ in range(2):
        suite.run("test_squeezenet_cpu")
    assert len(set(folders)) == 2
    assert not any(Path(f).exists() for f in folders)
    assert not list(tmp_path.iterdir())
    assert "ONNX_MODELS" not in os.environ


def test_every_case_has_a_model(suite: Suite) -> None:
    assert all(suite.model(c.name).graph.node for c in suite.cases)
    with pytest.raises(KeyError, match="test_no_such"):
        suite.model("test_no_such_cpu")


def test_a_result_survives_json(suite: Suite) -> None:
    for name in ("test_neg_cpu", "test_sign_cpu", "test_tan_cpu"):
        result = suite.run(name)
        assert CaseResult.from_dict(result.to_dict()) == result
