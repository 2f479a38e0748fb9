# SPDX-License-Identifier: Apache-2.0
"""BackendTester tells what a backend can do, and where it does not do what it says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

import onnx_multi_backend as omb
from backend_test.unit.conformance.broken_backends import (
    Around,
    AroundRep,
    ClaimsADeviceThatItLacks,
    FallsBackInSilence,
    RaisesForAStrangeDevice,
)
from backend_test.unit.models import linear, model, node, one_node, relu, subtract, tensor
from examples.toy_backend import ToyBackend
from onnx_multi_backend.conformance.tester import BackendTester
from onnx_multi_backend.conformance.tester_answers import Benchmark, OperatorSupport, Timing
from onnx_multi_backend.errors import InvalidModelError, OptionError, RunError

X = np.float32([[1, -2, 3]])


def made_up(op_type: str = "NoSuchOperator") -> ModelProto:
    made = node(op_type, ["x"], ["y"], domain="an.unknown.domain")
    return model([made], [tensor("x")], [tensor("y")], opsets={"an.unknown.domain": 1})


class ExitsToPrepare(ToyBackend):
    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        raise SystemExit("no driver")


def test_a_backend_that_exits_does_not_end_the_script_that_tests_it() -> None:
    tester = BackendTester(ExitsToPrepare)
    (support,) = tester.operator_support([relu()]).values()
    assert support.errors["SystemExit: no driver"] == 1
    assert tester.device_support(["CPU"])["CPU"].error == "SystemExit: no driver"
    with pytest.raises(RunError, match="the backend raised SystemExit: no driver"):
        tester.benchmark(relu(), [X])


# operator_support


def test_operators_are_counted_by_domain_and_type(preset: type[omb.Preset]) -> None:
    support = BackendTester(preset).operator_support([made_up(), linear(), relu(), relu((2, 3))])
    assert list(support) == [
        ("ai.onnx", "Add"),
        ("ai.onnx", "MatMul"),
        ("ai.onnx", "Relu"),
        ("an.unknown.domain", "NoSuchOperator"),
    ]
    assert support["ai.onnx", "Relu"] == OperatorSupport("ai.onnx", "Relu", models=2, compatible=2, preparable=2)
    lacking = support["an.unknown.domain", "NoSuchOperator"]
    assert [lacking.models, lacking.compatible, lacking.preparable] == [1, 0, 0]
    ((error, count),) = lacking.errors.items()
    assert error.startswith("UnsupportedModelError: ") and "NoSuchOperator" in error
    assert count == 1


def test_a_foreign_backend_is_asked_the_same(onnxruntime_backend: Any) -> None:
    support = BackendTester(onnxruntime_backend).operator_support([relu(), made_up()])
    assert support["ai.onnx", "Relu"].preparable == 1
    lacking = support["an.unknown.domain", "NoSuchOperator"]
    assert [lacking.compatible, lacking.preparable] == [1, 0], "it says yes to every model"
    assert next(iter(lacking.errors)).startswith("SkipTest: ")


def test_models_come_as_protos_bytes_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "linear.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="linear.data", size_threshold=0)
    given: list[Any] = [linear(), linear().SerializeToString(), path, str(path)]
    support = BackendTester(ToyBackend).operator_support(given)
    assert support["ai.onnx", "MatMul"] == OperatorSupport("ai.onnx", "MatMul", 4, 4, 4)


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        (b"no model", r"models\[1\]: the model's bytes is not an ONNX model"),
        ("missing.onnx", r"models\[1\]: There is no file '.*missing.onnx'"),
        (42, r"models\[1\]: A model is a path, bytes or an onnx.ModelProto"),
    ],
)
def test_an_unreadable_model_is_named(broken: Any, match: str) -> None:
    with pytest.raises(InvalidModelError, match=match):
        BackendTester(ToyBackend).operator_support([relu(), broken])


def test_operators_in_subgraphs_count() -> None:
    branch = onnx.parser.parse_graph("b () => (float[1] y) { y = Constant <value_floats = [1.0]> () }")
    chosen = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    nested = model([chosen], [tensor("c", [], onnx.TensorProto.BOOL)], [tensor("y", [1])])
    support = BackendTester(ToyBackend).operator_support([nested])
    assert [op_type for _, op_type in support] == ["Constant", "If"]
    assert support["ai.onnx", "Constant"].models == 1, "models are counted, not nodes"


def test_equal_errors_are_counted_and_the_frequent_ones_come_first() -> None:
    class Fails(ToyBackend):
        @classmethod
        def is_compatible(cls, model: ModelProto, *args: Any, **kwargs: Any) -> bool:
            raise KeyError("no")

        @classmethod
        def prepare(cls, model: ModelProto, *args: Any, **kwargs: Any) -> BackendRep:
            raise ValueError("a first line\nand a second" if model.graph.input[0].name == "x" else "another")

    models = [one_node("Sub", [tensor(a), tensor("b")], [tensor("y")]) for a in ("a", "x", "x")]
    (support,) = BackendTester(Fails).operator_support(models).values()
    assert list(support.errors.items()) == [
        ("is_compatible raised KeyError: 'no'", 3),
        ("ValueError: a first line", 2),
        ("ValueError: another", 1),
    ]


def test_a_backend_may_lack_is_compatible_and_return_none() -> None:
    class Bare:
        prepare = Backend.prepare  # checks the model, and returns None

    support = BackendTester(Bare).operator_support([relu()])["ai.onnx", "Relu"]
    assert support == OperatorSupport("ai.onnx", "Relu", 1, None, 0, {"prepare returned None": 1})
    assert str(support) == "ai.onnx.Relu: 1 model, 0 preparable; 1 x prepare returned None"


def test_the_backend_cannot_change_the_callers_model() -> None:
    class Touches(ToyBackend):
        @classmethod
        def prepare(cls, model: ModelProto, *args: Any, **kwargs: Any) -> BackendRep:
            model.Clear()
            raise ValueError("cleared")

    given = relu()
    BackendTester(Touches).operator_support([given])
    assert given == relu()


def test_device_and_options_reach_the_backend() -> None:
    seen = []

    class Notes(ToyBackend):
        @classmethod
        def prepare(cls, model: ModelProto, device: str = "?", **kwargs: Any) -> BackendRep:
            seen.append((device, kwargs))
            return super().prepare(model)

    BackendTester(Notes, "NPU", {"threads": 1}).operator_support([relu()])
    BackendTester(Notes).operator_support([relu()])
    assert seen == [("NPU", {"threads": 1})] * 2 + [("CPU", {}), ("?", {})]


# device_support


def test_a_preset_is_honest_about_devices(preset: type[omb.Preset]) -> None:
    devices = ["CPU", "CUDA:99", "NO_SUCH_DEVICE", ""]
    found = BackendTester(preset).device_support(devices)
    assert list(found) == devices
    assert all(support.honest for support in found.values())
    assert [found["CPU"].claimed, found["CPU"].prepares, found["CPU"].error] == [True, True, ""]
    assert "NO_SUCH_DEVICE" in found["NO_SUCH_DEVICE"].error


def test_onnxruntimes_own_backend_on_the_cpu(onnxruntime_backend: Any) -> None:
    found = BackendTester(onnxruntime_backend).device_support(["CPU", "NO_SUCH_DEVICE"])
    assert found["CPU"].honest and found["CPU"].claimed
    assert found["NO_SUCH_DEVICE"].honest and not found["NO_SUCH_DEVICE"].claimed


def test_a_false_claim_and_a_silent_fallback_are_found() -> None:
    claim = BackendTester(ClaimsADeviceThatItLacks).device_support(["CUDA"])["CUDA"]
    assert [claim.claimed, claim.prepares, claim.honest] == [True, False, False]
    assert str(claim) == "claimed, does not run: NOT HONEST (RuntimeError: CUDA driver not found)"
    fallback = BackendTester(FallsBackInSilence).device_support(["CUDA"])["CUDA"]
    assert str(fallback) == "not claimed, runs: NOT HONEST"


def test_a_wrong_result_does_not_count_as_running() -> None:
    class Wrong(Around):
        class Rep(AroundRep):
            def spoil(self, outputs: Any) -> Any:
                return [o + 1 for o in outputs]

    found = BackendTester(Wrong).device_support(["CPU"])["CPU"]
    assert not found.prepares and not found.honest
    assert found.error.startswith("wrong result: ")


def test_a_supports_device_that_raises_is_reported() -> None:
    found = BackendTester(RaisesForAStrangeDevice).device_support(["NPU"])["NPU"]
    assert [found.claimed, found.error] == [False, "supports_device raised KeyError: 'NPU'"]


# benchmark


def test_run_model_pays_for_preparing(preset: type[omb.Preset]) -> None:
    found = BackendTester(preset).benchmark(relu(), [X], iterations=3)
    for timing in (found.run_model, found.run):
        assert timing.count == 3
        assert 0 < timing.min_ms <= timing.median_ms <= timing.max_ms
    assert found.ratio == found.run_model.median_ms / found.run.median_ms > 1


def test_a_module_may_call_run_model_run(onnxruntime_backend: Any) -> None:
    found = BackendTester(onnxruntime_backend).benchmark(subtract(), [X, X], iterations=2)
    assert (found.run_model.count, found.run.count) == (2, 2)


class Slow(ToyBackend):
    """Takes 20 ms to prepare, and 5 ms to run; notes what it is called for."""

    calls: list[str] = []

    class Rep(AroundRep):
        def run(self, inputs: Any, **kwargs: Any) -> Any:
            Slow.calls.append("run")
            time.sleep(0.005)
            return self.rep.run(inputs)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        cls.calls.append("prepare")
        time.sleep(0.02)
        return cls.Rep(super().prepare(model, device, **kwargs))


def test_times_are_milliseconds_and_the_two_take_turns_after_a_warm_up() -> None:
    Slow.calls.clear()
    warm_up, timed = 2, 4
    started = time.perf_counter()
    found = BackendTester(Slow).benchmark(relu(), [X], iterations=timed)
    all_ms = (time.perf_counter() - started) * 1e3
    assert found.run.min_ms >= 5
    assert found.run_model.min_ms >= 25
    assert timed * (found.run.min_ms + found.run_model.min_ms) < all_ms
    assert Slow.calls == ["prepare", *["prepare", "run", "run"] * (warm_up + timed)]


def test_the_ratio_is_that_of_the_medians() -> None:
    found = Benchmark(run_model=Timing(5, 6.0, 1.0, 9.0), run=Timing(5, 1.5, 0.5, 2.0))
    assert found.ratio == 4
    assert str(found) == (
        "run_model 6.000 ms (1.000 to 9.000, 5 times), run 1.500 ms (0.500 to 2.000, 5 times): 4.0 times"
    )


@pytest.mark.parametrize("iterations", [0, -1, 2.5, "3", None])
def test_iterations_are_a_positive_number(iterations: Any) -> None:
    with pytest.raises(OptionError, match="iterations="):
        BackendTester(ToyBackend).benchmark(relu(), [X], iterations=iterations)


def test_a_benchmark_that_cannot_be_made_says_why() -> None:
    with pytest.raises(RunError, match="prepare returned None"):
        BackendTester(Backend).benchmark(relu(), [X])
    with pytest.raises(InvalidModelError, match=r"There is no file '.*missing.onnx'"):
        BackendTester(ToyBackend).benchmark("missing.onnx", [X])
