# SPDX-License-Identifier: Apache-2.0
"""Threads follow the affinity mask and the quota where the user names no number, and the user's number where one is named."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from benchmarks import groups
from onnx_multi_backend.cache.upkeep import entries
from onnx_multi_backend.engines.openvino import threads as of_openvino
from onnx_multi_backend.engines.ort import engine as ort_engine
from onnx_multi_backend.engines.ort import threads as of_ort
from onnx_multi_backend.engines.ort.openvino_ep import threads as of_provider
from onnx_multi_backend.host import cpus
from onnx_multi_backend.host.cgroups import Quota, QuotaFile
from onnx_multi_backend.host.cpus import Cpus
from onnx_multi_backend.host.devices import Device

CPU = Device("CPU")
OPENVINO = "OpenVINOExecutionProvider"
LATENCY = {"PERFORMANCE_HINT": "LATENCY"}
LIMITED = {"INFERENCE_NUM_THREADS": 2, "ENABLE_CPU_PINNING": False}

Here = Callable[..., None]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ORT_INTRA_OP_NUM_THREADS", "ORT_INTER_OP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Here:
    """As if this were a computer with so many CPUs, two of which make a core if `smt`, and so many were allowed."""

    def pretend(host: int, mask: int | None = None, quota: float | None = None, *, smt: bool = False) -> None:
        system = tmp_path / f"cpus of {host}, {smt}"
        for cpu in range(host if smt else 0):
            (system / f"cpu{cpu}" / "topology").mkdir(parents=True, exist_ok=True)
            (system / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(str(cpu % (host // 2)))
        limit = None if quota is None else Quota(quota, QuotaFile(2, Path("/cpu.max")))
        allowed = frozenset(range(host if mask is None else mask))
        monkeypatch.setattr(cpus, "usable", lambda: Cpus(host, allowed, limit, system))

    return pretend


def intra(prepared: omb.PreparedModel) -> int:
    return int(prepared._session.native.get_session_options().intra_op_num_threads)  # type: ignore[attr-defined]


def of_native(prepared: omb.PreparedModel, name: str) -> Any:
    return prepared._session.native.get_property(name)  # type: ignore[attr-defined]


# What an engine is told.


@pytest.mark.parametrize(
    ("limits", "smt", "ort", "openvino"),
    [
        ((8,), False, {}, {}),
        ((8, 8, 8.0), False, {}, {}),
        ((8, 8, 2.5), False, {"intra_op_num_threads": 2}, LIMITED),
        ((8, 8, 0.5), False, {"intra_op_num_threads": 1}, {**LIMITED, "INFERENCE_NUM_THREADS": 1}),
        ((8, 2), False, {"intra_op_num_threads": 2}, {}),  # OpenVINO reads the mask itself
        ((8, 4, 2.0), False, {"intra_op_num_threads": 2}, LIMITED),
        ((8, 2, 4.0), False, {"intra_op_num_threads": 2}, {}),
        ((8, 8, 6.0), True, {}, {}),  # of four cores both take one thread each
        ((8, 4, 6.0), True, {"intra_op_num_threads": 4}, {}),
        ((8, 8, 2.0), True, {"intra_op_num_threads": 2}, LIMITED),
    ],
)
def test_a_number_is_set_where_the_engines_own_is_wrong(
    here: Here, limits: tuple[Any, ...], smt: bool, ort: dict[str, int], openvino: dict[str, Any]
) -> None:
    here(*limits, smt=smt)
    assert of_ort.own(None) == of_ort.own({}) == ort
    assert of_openvino.own(CPU, LATENCY) == openvino


def test_throughput_takes_both_threads_of_a_core(here: Here) -> None:
    here(8, 8, 6.0, smt=True)
    six = {"INFERENCE_NUM_THREADS": 6, "ENABLE_CPU_PINNING": False}
    assert of_openvino.own(CPU, {"PERFORMANCE_HINT": "THROUGHPUT"}) == six
    assert of_openvino.own(CPU, {**LATENCY, "ENABLE_HYPER_THREADING": True}) == six


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({"intra_op_num_threads": 5}, {}),
        ({"intra_op_num_threads": 0}, {}),  # ONNX Runtime's own number, asked for
        ({"graph_optimization_level": "ORT_DISABLE_ALL"}, {"intra_op_num_threads": 2}),
        ({"execution_mode": "ORT_PARALLEL"}, {"intra_op_num_threads": 2, "inter_op_num_threads": 2}),
        ({"execution_mode": "ORT_PARALLEL", "inter_op_num_threads": 3}, {"intra_op_num_threads": 2}),
        ({"session.intra_op_thread_affinities": "1;2"}, {}),
        ({"use_per_session_threads": False}, {}),
        (object(), {}),
    ],
)
def test_session_options_that_name_a_number(here: Here, given: Any, own: dict[str, int]) -> None:
    here(8, 8, 2.0)
    assert of_ort.own(given) == own
    merged = of_ort.with_threads(given)
    assert merged is given if not own else merged == {**own, **given}


def test_onnx_runtimes_own_variables_name_numbers(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here(8, 8, 2.0)
    monkeypatch.setenv("ORT_INTRA_OP_NUM_THREADS", "3")
    assert of_ort.own({}) == {}
    assert of_ort.own({"execution_mode": "ORT_PARALLEL"}) == {"inter_op_num_threads": 2}


@pytest.mark.parametrize(
    ("device", "given"),
    [
        ("CPU", {"INFERENCE_NUM_THREADS": 4}),
        ("CPU", {"INFERENCE_NUM_THREADS": 0}),  # OpenVINO's own number, asked for
        ("CPU", {"NUM_STREAMS": 2}),
        ("AUTO", {"NUM_STREAMS": 2}),
        ("AUTO", {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}}),
        ("HETERO:GPU,CPU", {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 4}}}),
        ("AUTO", {"DEVICE_PROPERTIES": "of another kind"}),
        ("GPU.1", {}),
        ("NPU", {}),
        ("AUTO:GPU,NPU", {}),
        ("BATCH:GPU(4)", {}),
    ],
)
def test_properties_that_stay_as_they_are(here: Here, device: str, given: dict[str, Any]) -> None:
    here(8, 8, 2.0)
    assert of_openvino.with_threads(Device(device), given) is given


def test_where_the_number_goes(here: Here) -> None:
    here(8, 8, 2.0)
    for device in ("CPU", "BATCH:CPU(4)"):
        assert of_openvino.with_threads(Device(device), LATENCY) == {**LATENCY, **LIMITED}
    for device in ("AUTO", "AUTO:GPU,CPU", "MULTI:CPU,GPU", "HETERO:GPU,CPU"):
        assert of_openvino.with_threads(Device(device), LATENCY) == {**LATENCY, "DEVICE_PROPERTIES": {"CPU": LIMITED}}
    given = {"DEVICE_PROPERTIES": {"CPU": {"ENABLE_CPU_PINNING": True}, "GPU": {"NUM_STREAMS": 2}}}
    assert of_openvino.with_threads(Device("AUTO"), given)["DEVICE_PROPERTIES"] == {
        "CPU": {"INFERENCE_NUM_THREADS": 2, "ENABLE_CPU_PINNING": True},
        "GPU": {"NUM_STREAMS": 2},
    }
    assert of_openvino.with_threads(CPU, {"ENABLE_CPU_PINNING": True})["ENABLE_CPU_PINNING"] is True


@pytest.mark.parametrize(
    "given",
    [
        {"num_of_threads": "4"},
        {"num_streams": "2"},
        {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": "4"}}'},
        {"load_config": '{"AUTO": {"NUM_STREAMS": "2"}}'},
        {"load_config": "no JSON"},
        {"load_config": "[1]"},
        {"load_config": '{"CPU": 1}'},
        {"device_type": "GPU"},
    ],
)
def test_options_of_the_openvino_provider_that_stay_as_they_are(here: Here, given: dict[str, str]) -> None:
    here(8, 8, 2.0)
    assert of_provider.with_threads(OPENVINO, given, CPU) is given


def test_where_the_openvino_provider_is_told(here: Here) -> None:
    def config(given: dict[str, str], provider: str = OPENVINO, device: str = "CPU") -> Any:
        return json.loads(of_provider.with_threads(provider, given, Device(device)).get("load_config", "null"))

    here(8, 8, 2.0)
    told = {"INFERENCE_NUM_THREADS": "2", "ENABLE_CPU_PINNING": "NO"}
    assert config({}) == config({"device_type": "AUTO:CPU"}) == config({}, f"{OPENVINO}.AUTO", "AUTO") == {"CPU": told}
    hint = {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": "YES"}
    assert config({"load_config": json.dumps({"CPU": hint, "GPU": {}})}) == {"CPU": {**told, **hint}, "GPU": {}}
    assert config({}, "CPUExecutionProvider") is None
    assert config({}, device="GPU") is None
    here(8, 2)
    assert config({}) is None


# What sessions get.


def test_sessions_of_onnx_runtime(here: Here, ort_cpu: type[omb.Preset]) -> None:
    import onnxruntime

    own = onnxruntime.SessionOptions()
    cpu = {"provider_name": "CPUExecutionProvider"}
    here(8, 8, 3.0)
    assert intra(ort_cpu.prepare(models.relu())) == 3
    assert intra(omb.OrtBackend.prepare(models.relu(), **cpu)) == 3
    assert intra(ort_cpu.prepare(models.relu(), inter_op_num_threads=2)) == 3
    assert intra(ort_cpu.prepare(models.relu(), intra_op_num_threads=2)) == 2
    assert intra(ort_cpu.prepare(models.relu(), session_options={"intra_op_num_threads": 5})) == 5
    assert intra(ort_cpu.prepare(models.relu(), session_options={"intra_op_num_threads": 0})) == 0
    assert intra(omb.OrtBackend.prepare(models.relu(), session_options=own, **cpu)) == 0
    assert own.intra_op_num_threads == 0
    here(8)
    assert intra(ort_cpu.prepare(models.relu())) == 0
    here(8, 2)
    assert intra(ort_cpu.prepare(models.relu())) == 2


def test_sessions_of_openvino(here: Here, openvino: type[omb.Preset]) -> None:
    def told(**options: Any) -> tuple[int, bool]:
        made = openvino.prepare(models.linear(), **options)
        return of_native(made, "INFERENCE_NUM_THREADS"), of_native(made, "ENABLE_CPU_PINNING")

    here(8)
    free = told()
    here(8, 8, 1.0)
    assert told() == (1, False)
    assert told(performance_hint="THROUGHPUT") == (1, False)
    assert told(ENABLE_CPU_PINNING=True) == (1, True)
    assert told(INFERENCE_NUM_THREADS=0) == free
    assert told(INFERENCE_NUM_THREADS=free[0])[0] == free[0]
    made = openvino.prepare(models.linear(), NUM_STREAMS=free[0])
    assert of_native(made, "NUM_STREAMS") == free[0]
    here(8)
    assert told() == free


def test_a_tiny_model_runs_in_the_caller_all_the_same(here: Here, openvino: type[omb.Preset]) -> None:
    here(8, 8, 1.0)
    made = openvino.prepare(models.relu((1, 64)))
    assert str(of_native(made, "EXCLUSIVE_ASYNC_REQUESTS")) == "YES"
    assert of_native(made, "INFERENCE_NUM_THREADS") == 1


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The options with which each provider is added to a session."""
    seen: list[dict[str, str]] = []
    attach = ort_engine.attach

    def spy(options: Any, name: str, chosen: dict[str, str], **others: Any) -> None:
        seen.append(chosen)
        attach(options, name, chosen, **others)

    monkeypatch.setattr(ort_engine, "attach", spy)
    return seen


@pytest.mark.parametrize("name", ["OrtOpenvino", "OrtOpenvinoFloat"])
def test_sessions_of_the_openvino_provider(
    here: Here, openvino_ep: type[omb.Preset], attached: list[dict[str, str]], name: str
) -> None:
    def told(**options: Any) -> Any:
        attached.clear()
        made = omb.presets()[name].prepare(models.linear(), **options)
        np.testing.assert_array_equal(made.run(np.zeros((1, 3), np.float32))[0].shape[:1], [1])
        of_cpu = json.loads(attached[-1].get("load_config", "{}")).get("CPU", {})
        return intra(made), of_cpu.get("INFERENCE_NUM_THREADS"), attached[-1].get("num_of_threads")

    here(8, 8, 1.0)
    assert told() == (1, "1", None)
    assert told(intra_op_num_threads=2) == (2, "1", None)
    if name == "OrtOpenvino":
        config = {"load_config": json.dumps({"CPU": {"INFERENCE_NUM_THREADS": "2"}})}
        assert told(provider_options=config) == (1, "2", None)
    else:
        assert set(told(openvino_num_threads=2)) == {1, "2", None}
    here(8)
    assert told() == (0, None, None)


def test_one_thread_is_as_good_for_a_stream(here: Here, ort_cpu: type[omb.Preset]) -> None:
    here(8, 8, 1.0)
    target = ort_cpu.prepare(models.relu())._sessions.target
    assert target.for_throughput() is target, "no second session"
    here(8, 8, 2.0)
    assert target.for_throughput() is not target


# The cache.


def test_a_session_from_the_cache_has_the_number_of_today(here: Here, engine: type[omb.Preset], tmp_path: Path) -> None:
    file, cache = tmp_path / "model.onnx", tmp_path / "cache"
    onnx.save(models.linear(), file)

    def number() -> int:
        made = engine.prepare(file, cache_dir=cache)
        return intra(made) if engine.name == "OrtCpu" else int(of_native(made, "INFERENCE_NUM_THREADS"))

    here(8)
    free = number()
    counted = []
    for quota in (1.0, 2.0):
        here(8, 8, quota)
        for _ in range(2):
            assert number() == (quota if engine.name == "OrtCpu" else min(quota, free))
        counted.append(len(list(entries(cache))))
    assert counted == [2, 3], "one for each number"
    here(8)
    assert number() == free
    assert len(list(entries(cache))) == 3


# The real thing.

_NUMBERS = """
import json, os, sys
if sys.argv[1:]:
    os.sched_setaffinity(0, {int(sys.argv[1])})  # first of all: NumPy starts threads when it is imported
import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.cli import threads
found, states = {"told": threads.to_json()}, omb.availability()
for name in ("OrtCpu", "Openvino", "OrtOpenvino"):
    if states[name].usable:
        made = omb.presets()[name].prepare(models.linear(), cache_dir=False)
        native = made._session.native
        if name == "Openvino":
            found[name] = native.get_property("INFERENCE_NUM_THREADS")
        else:
            found[name] = native.get_session_options().intra_op_num_threads
masks = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
found["outside"] = sorted(set().union(*masks) - os.sched_getaffinity(0))
print(json.dumps(found))
"""


def _found(prefix: Sequence[str] = (), *arguments: str) -> dict[str, Any]:
    command = [*prefix, sys.executable, "-c", _NUMBERS, *arguments]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="this process has one CPU"
)
def test_under_an_affinity_mask_the_number_is_the_one_that_is_told() -> None:
    found = _found((), str(max(os.sched_getaffinity(0))))
    assert found.pop("told") == {
        "number": 1,
        "cpus": 1,
        "cpus_of_host": cpus.usable().host,
        "why": "1 CPU of the affinity mask",
    }
    assert found.pop("outside") == [], "ONNX Runtime's own threads leave the mask"
    assert set(found.values()) <= {1}


@pytest.fixture
def group() -> Iterator[groups.Group]:
    """A group with a quota of one CPU."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(groups.with_quota(1, "omb-test"))
        except SystemExit as error:
            pytest.skip(str(error))
        yield made


@pytest.mark.skipif(cpus.usable().count < 2, reason="this process has one CPU already")
def test_under_a_quota_the_number_is_the_one_that_is_told(group: groups.Group) -> None:
    found = _found(group.command)
    told = found.pop("told")
    assert (told["number"], told["cpus"]) == (1, 1)
    assert told["why"].startswith("a quota of 1 CPU (cgroup v")
    assert found.pop("outside") == []
    assert set(found.values()) <= {1}
