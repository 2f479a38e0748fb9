# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend presets``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import onnx_multi_backend as omb
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.engines.openvino import instructions
from onnx_multi_backend.engines.openvino import runtime as openvino_runtime
from onnx_multi_backend.engines.ort import runtime as ort
from onnx_multi_backend.host import cpus, processor
from onnx_multi_backend.host.cgroups import Quota, QuotaFile
from onnx_multi_backend.host.cpus import Cpus
from onnx_multi_backend.host.processor import Processor, current


def test_every_preset_has_a_row_and_every_unusable_one_a_reason_and_a_cure(cli: Cli) -> None:
    done = cli("presets")
    assert done.code == 0
    rows = {line.split()[0]: line.split()[1] for line in done.out.split("\n\n")[0].splitlines()[1:]}
    states = omb.availability()
    assert rows == {name: "yes" if state.usable else "no" for name, state in states.items()}
    for name, state in states.items():
        if not state.usable:
            paragraph = next(
                p for p in done.out.split("\n\n")[1:] if name in p.splitlines()[0].replace(":", ",").split(", ")
            )
            assert f"why   {state.reason}\n" in paragraph + "\n"
            assert f"cure  {state.cure}\n" in paragraph + "\n"


def test_json_holds_the_same(cli: Cli) -> None:
    content = json.loads(cli("presets", "--json").out)
    assert content["conflict"] == ort.conflict()
    assert list(content["presets"]) == list(omb.presets())
    state = omb.availability()["OrtCpu"]
    assert content["presets"]["OrtCpu"] == {
        "usable": state.usable,
        "devices": list(state.devices),
        "engine": state.engine,
        "reason": state.reason,
        "cure": state.cure,
    }


def test_two_wheels_that_overwrite_each_other_are_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = {"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}
    monkeypatch.setattr(ort, "installed_wheels", lambda: wheels)
    done = cli("presets")
    assert "\nConflict\n" in done.out
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in done.out
    assert done.err == ""


def test_without_any_engine_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime, name in (ort, "ONNX Runtime"), (openvino_runtime, "OpenVINO"):
        monkeypatch.setattr(runtime, "why_missing", lambda name=name: f"{name} is not installed")
        monkeypatch.setattr(runtime, "describe", str)
    done = cli("presets")
    assert done.code == 0
    assert " yes " not in done.out
    assert 'pip install "onnxruntime-gpu[cuda,cudnn]"' in done.out
    assert cli("conformance").error() == (
        "No preset is usable here. `onnx-multi-backend presets` says why, and what to install."
    )


def test_what_openvino_makes_of_this_cpu_is_shown(cli: Cli, openvino: object) -> None:
    known = json.loads(cli("presets", "--json").out)["openvino_cpu"]
    here = current()
    assert known["instruction_set"] == here.level
    assert known["int8"] is bool({"avx512_vnni", "avx_vnni", "amx_int8"} & here.instruction_sets)
    shown = cli("presets").out.partition("OpenVINO on this CPU\n")[2]
    assert re.search(rf"^ *instruction set +{re.escape(here.level)}", shown, re.M)
    for name in ("bf16", "fp16", "int8"):
        assert re.search(rf"^ *{name} +{'native' if known[name] else 'not native'}$", shown, re.M)


@pytest.mark.parametrize(
    ("here", "line", "known"),
    [
        (
            Cpus(16, frozenset(range(16)), Quota(2.5, QuotaFile(2, Path("/sys/fs/cgroup/cpu.max"))), Path("/nowhere")),
            "2 on the CPU: a quota of 2.5 CPUs (cgroup v2, /sys/fs/cgroup/cpu.max)",
            {"number": 2, "cpus": 2, "cpus_of_host": 16},
        ),
        (
            Cpus(16, frozenset({3}), None, Path("/nowhere")),
            "1 on the CPU: 1 CPU of the affinity mask",
            {"number": 1, "cpus": 1, "cpus_of_host": 16},
        ),
        (
            Cpus(16, frozenset(range(16)), None, Path("/nowhere")),
            "the engine's default: no limit, 16 CPUs",
            {"number": None, "cpus": 16, "cpus_of_host": 16},
        ),
    ],
)
def test_the_number_of_threads_is_told_with_its_reason(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, here: Cpus, line: str, known: dict[str, int | None]
) -> None:
    monkeypatch.setattr(cpus, "usable", lambda: here)
    assert f"\nThreads, where you name no number\n  {line}\n" in cli("presets").out
    assert json.loads(cli("presets", "--json").out)["threads"] == {**known, "why": here.why}


@pytest.mark.parametrize(
    ("flags", "level", "native"),
    [
        ({"sse4_2"}, "SSE4.2", set()),
        ({"sse4_2", "avx", "avx2", "avx_vnni"}, "AVX2", {"int8"}),
        ({"sse4_2", "avx", "avx2", "avx512f", "avx512_vnni", "avx512_bf16"}, "AVX-512", {"int8", "bf16"}),
        ({"avx512f", "amx_tile", "amx_int8", "amx_bf16", "avx512_fp16"}, "AMX", {"int8", "bf16", "fp16"}),
    ],
)
def test_a_type_is_native_where_openvino_offers_it_and_the_processor_has_it(
    openvino: object, monkeypatch: pytest.MonkeyPatch, flags: set[str], level: str, native: set[str]
) -> None:
    """Mocked, for no host is all of these: what OpenVINO lists on such a processor."""
    listed = ["FP32", "INT8", "BF16", "FP16"]
    core = SimpleNamespace(get_property=lambda device, name: listed if name.startswith("OPT") else "A Processor")
    monkeypatch.setattr(openvino_runtime, "core", lambda: core)
    monkeypatch.setattr(openvino_runtime, "usable_devices", lambda: ("CPU",))
    monkeypatch.setattr(processor, "current", lambda: Processor("X", 1, 1, "A Processor", frozenset(flags)))
    found = instructions.find()
    assert found is not None
    assert found.instruction_set == level
    assert {name for name in ("bf16", "fp16", "int8") if getattr(found, name)} == native
    listed.remove("BF16")
    found = instructions.find()
    assert found is not None
    assert not found.bf16
