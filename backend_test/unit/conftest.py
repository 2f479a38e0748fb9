# SPDX-License-Identifier: Apache-2.0
"""The presets that run on the CPU, each skipped with its own reason where it is not usable."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit.counting import counted
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.engines.ort.engine import OrtEngine
from onnx_multi_backend.engines.ort.limits import OrtLimits
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.presets.answers import Availability
from onnx_multi_backend.presets.registry import get_preset

CPU_PRESETS = ("OrtCpu", "Openvino", "OrtOpenvino")


@functools.cache
def _availability(name: str) -> Availability:
    return get_preset(name).availability()


def _usable(name: str) -> type[omb.Preset]:
    state = _availability(name)
    if not state.usable:
        pytest.skip(f"{name}: {state.reason}. {state.cure}.")
    return get_preset(name)  # not presets(), which looks through all installed packages


@pytest.fixture(params=CPU_PRESETS)
def preset(request: pytest.FixtureRequest) -> type[omb.Preset]:
    """Each preset that computes on the CPU here."""
    return _usable(request.param)


@pytest.fixture(params=("OrtCpu", "Openvino"))
def engine(request: pytest.FixtureRequest) -> type[omb.Preset]:
    """One preset for each engine: ONNX Runtime, and OpenVINO without it."""
    return _usable(request.param)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engines are asked to compile from here on, a name for each: whole models and models of a few nodes."""
    calls = counted(monkeypatch, OrtEngine, "show")
    counted(monkeypatch, OrtTarget, "_session", calls)
    counted(monkeypatch, OpenvinoTarget, "_compile", calls)
    return calls


@pytest.fixture
def ort_cpu() -> type[omb.Preset]:
    return _usable("OrtCpu")


@pytest.fixture
def cuda() -> type[omb.Preset]:
    return _usable("OrtCuda")


@pytest.fixture
def openvino() -> type[omb.Preset]:
    return _usable("Openvino")


@pytest.fixture
def openvino_ep() -> type[omb.Preset]:
    """The OpenVINO execution provider, in onnxruntime-openvino or, on an Intel processor, as a plugin."""
    return _usable("OrtOpenvino")


@pytest.fixture
def built_in_ep(openvino_ep: type[omb.Preset]) -> type[omb.Preset]:
    """The OpenVINO execution provider in onnxruntime-openvino."""
    without_the_plugin(openvino_ep)
    return openvino_ep


def without_the_plugin(preset: type[omb.Preset]) -> None:
    """Skip a test of what only the provider in onnxruntime-openvino does, or does rightly."""
    if preset.name == "OrtOpenvino" and "plugin" in preset.availability().engine:
        pytest.skip("OrtOpenvino is on the plugin here")


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are taken as ever, in turns of a millisecond: for tests of something else than what comes out."""
    from onnx_multi_backend.calibration import speed
    from onnx_multi_backend.measuring import clock
    from onnx_multi_backend.tuning import trials

    monkeypatch.setattr(speed, "_AT_LEAST", 0.001)
    monkeypatch.setattr(speed, "_MOST_ROUNDS", speed._ROUNDS)
    for module, names in ((clock, ("SETTLE", "WAKE")), (trials, ("SETTLE", "WAKE", "_TURN", "_STREAM"))):
        for name in names:
            monkeypatch.setattr(module, name, 0.001)


@pytest.fixture
def gpu_wheel() -> Path:
    """The folder of the installed onnxruntime-gpu."""
    import onnxruntime

    if "TensorrtExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("the installed ONNX Runtime is not onnxruntime-gpu")
    return Path(onnxruntime.__file__).parent


@pytest.fixture
def no_gpu() -> None:
    from onnx_multi_backend.engines import nvidia

    if nvidia.device_count()[0]:
        pytest.skip("this host has an NVIDIA GPU; the test is about hosts without one")


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has ONNX Runtime read less than what onnx knows, as older releases do: some newer one reads all of it."""
    read_ir_version, read_opset = OrtLimits.max_ir_version, OrtLimits.max_opset

    def limit(ir_version: int = onnx.IR_VERSION - 1, opset: int = onnx.defs.onnx_opset_version() - 1) -> None:
        def max_opset(self: OrtLimits, domain: str) -> int | None:
            newest = read_opset(self, domain)
            return newest if domain or newest is None else min(newest, opset)

        def max_ir_version(self: OrtLimits) -> int:
            return min(read_ir_version(self) or ir_version, ir_version)

        monkeypatch.setattr(OrtLimits, "max_opset", max_opset)
        monkeypatch.setattr(OrtLimits, "max_ir_version", max_ir_version)

    return limit


@pytest.fixture
def fresh() -> Callable[..., str]:
    """Runs code in a fresh interpreter, with folders in front of sys.path, and returns what it prints."""

    def run(code: str, *path: Path) -> str:
        front = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n"
        done = subprocess.run([sys.executable, "-c", front + code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
