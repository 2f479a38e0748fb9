# SPDX-License-Identifier: Apache-2.0
"""Presets are listed without an engine; other packages add theirs; what gets in the way is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import onnx_multi_backend as omb

Fresh = Callable[..., str]

NAMES = (
    "Ort OrtCpu OrtCuda OrtTensorrt OrtTensorrtFloat OrtTensorrtFloatOptim OrtTensorrtInt8 OrtTensorrtInt8QDQ "
    "OrtOpenvino OrtOpenvinoFloat OrtOpenvinoInt8 Openvino"
).split()

#: Makes both engines look as if they were not installed.
NO_ENGINE = """
import importlib.metadata
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnxruntime", "openvino", "onnxruntime_ep_openvino"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
_find_spec = importlib.util.find_spec
def find_spec(name, package=None):
    try:
        return _find_spec(name, package)
    except ModuleNotFoundError:
        return None
importlib.util.find_spec = find_spec
_version = importlib.metadata.version
def version(name):
    if name.startswith(("onnxruntime", "openvino", "ort-")):
        raise importlib.metadata.PackageNotFoundError(name)
    return _version(name)
importlib.metadata.version = version
"""


def distribution(folder: Path, name: str, version: str, entry_points: str = "") -> Path:
    """What importlib.metadata sees of an installed package."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if entry_points:
        (info / "entry_points.txt").write_text(f"[onnx_multi_backend.presets]\n{entry_points}")
    return folder


def test_the_presets_are_the_twelve_by_class_name() -> None:
    found = omb.presets()
    assert list(found)[:12] == NAMES
    assert [found[n] for n in NAMES] == [getattr(omb, f"{n}Backend") for n in NAMES]
    assert all(preset.name == name for name, preset in found.items())


def test_listing_presets_imports_no_engine(fresh: Fresh) -> None:
    code = """
import onnx_multi_backend as omb
import onnx_multi_backend.backend
assert len(omb.presets()) >= 12
[p.__signature__ for p in omb.presets().values()]
print(sorted(m for m in sys.modules if m.split(".")[0] in ("onnxruntime", "openvino", "onnxruntime_ep_openvino")))
"""
    assert fresh(code) == "[]"


def test_the_engine_of_one_preset_does_not_load_the_other(fresh: Fresh, ort_cpu: type[omb.Preset]) -> None:
    code = """
import onnx_multi_backend as omb
omb.OrtCpuBackend(omb.get_example("sigmoid"))
print("onnxruntime" in sys.modules, "openvino" in sys.modules)
"""
    assert fresh(code) == "True False"


def test_without_an_engine_the_package_lists_its_presets_and_says_what_to_install(fresh: Fresh) -> None:
    code = (
        NO_ENGINE
        + """
import onnx_multi_backend as omb
print(len(omb.presets()))
for name, state in omb.availability().items():
    assert not state.usable and state.devices == () and state.engine == "", state
    wanted = "pip install openvino" if name == "Openvino" else 'pip install "onnxruntime-gpu[cuda,cudnn]"'
    assert wanted in state.cure and "not installed" in state.reason, (name, state)
for preset in (omb.OrtCpuBackend, omb.OpenvinoBackend):
    assert not preset.supports_device("CPU")
    assert not preset.is_compatible(omb.get_example(omb.get_example()[0]))
    try:
        preset(omb.get_example(omb.get_example()[0]))
    except omb.OnnxMultiBackendError as error:
        print(type(error).__name__, "nstall" in str(error))
"""
    )
    lines = fresh(code).splitlines()
    assert lines[0] == "12"
    assert len(lines) == 3
    assert all(line in ("EngineNotInstalledError True", "DeviceUnavailableError True") for line in lines[1:])


def test_two_onnx_runtime_wheels_in_one_environment_are_named(
    fresh: Fresh, ort_cpu: type[omb.Preset], tmp_path: Path
) -> None:
    path = distribution(tmp_path, "onnxruntime-directml", "1.24.4")
    code = """
import warnings
import onnx_multi_backend as omb
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    omb.OrtCpuBackend(omb.get_example("sigmoid"))
    omb.OrtCpuBackend(omb.get_example("sigmoid"))
print([w.category.__name__ for w in caught], "|", caught[0].message)
print(omb.availability()["OrtCpu"].engine)
"""
    warning, engine = fresh(code, path).splitlines()
    assert warning.startswith("['EnvironmentWarning'] | ")
    assert "2 ONNX Runtime wheels" in warning
    assert "onnxruntime-directml 1.24.4" in warning
    assert "pip uninstall -y" in warning
    assert "onnxruntime-directml 1.24.4" in engine


def test_one_wheel_is_no_reason_to_warn(fresh: Fresh, ort_cpu: type[omb.Preset]) -> None:
    code = """
import warnings
warnings.simplefilter("error")
import onnx_multi_backend as omb
omb.availability()
omb.OrtCpuBackend(omb.get_example("sigmoid"))
print("quiet")
"""
    assert fresh(code) == "quiet"


def test_an_onnx_runtime_too_old_to_tell_where_nodes_run_is_refused(fresh: Fresh, tmp_path: Path) -> None:
    code = """
import importlib.metadata
version = importlib.metadata.version
importlib.metadata.version = lambda name: "1.20.0" if name == "onnxruntime" else version(name)
import onnx_multi_backend as omb
state = omb.availability()["OrtCpu"]
print(state.usable, "|", state.reason)
"""
    assert fresh(code, tmp_path).startswith("False | onnxruntime 1.20.0 is older than 1.24")


GOOD = """
import onnx_multi_backend as omb
class MineBackend(omb.OrtCpuBackend):
    name = "Mine"
"""


def test_a_third_party_preset_is_listed_and_works(fresh: Fresh, ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    path = distribution(tmp_path, "mine", "1.0", "Mine = mine_backend:MineBackend\n")
    (path / "mine_backend.py").write_text(GOOD)
    code = """
import warnings
warnings.simplefilter("error")
import onnx_multi_backend as omb
rep = omb.prepare(omb.get_example("sigmoid"), preset="Mine")
print(omb.presets()["Mine"].__name__, omb.availability()["Mine"].usable, rep.preset, len(omb.presets()))
"""
    assert fresh(code, path) == "MineBackend True Mine 13"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("Bad = bad_backend:BadBackend", "cannot be loaded: ZeroDivisionError"),
        ("Bad = nowhere_backend:BadBackend", "cannot be loaded: ModuleNotFoundError"),
        ("Bad = mine_backend:Missing", "cannot be loaded: AttributeError"),
        ("Bad = mine_backend:omb", "is not a subclass of onnx_multi_backend.Preset"),
        ("OrtCpu = mine_backend:MineBackend", "the name is taken by onnx_multi_backend"),
    ],
)
def test_a_broken_third_party_preset_warns_and_harms_nothing_else(
    fresh: Fresh, tmp_path: Path, entry: str, told: str
) -> None:
    path = distribution(tmp_path, "third", "1.0", f"{entry}\nMine = mine_backend:MineBackend\n")
    (path / "mine_backend.py").write_text(GOOD)
    (path / "bad_backend.py").write_text("1 / 0")
    code = """
import warnings
import onnx_multi_backend as omb
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    names = list(omb.presets())
print(len(names), "Mine" in names, "Bad" in names, omb.presets()["OrtCpu"] is omb.OrtCpuBackend)
for w in caught:
    print(w.category.__name__, w.message, w.filename)
"""
    first, *warned = fresh(code, path).splitlines()
    assert first == "13 True False True"
    assert len(warned) == 1
    assert warned[0].startswith("PresetWarning preset ")
    assert told in warned[0]
    assert "onnx_multi_backend/" not in warned[0].split()[-1]  # it points at who called


def test_an_unknown_preset_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(omb.OptionError, match=r"no preset 'OrtGpu'.*OrtCpu, OrtCuda.*Openvino"):
        omb.prepare(b"", preset="OrtGpu")


def test_availability_tells_engine_devices_cause_and_cure() -> None:
    for state in omb.availability().values():
        assert isinstance(state.usable, bool)
        assert bool(state.devices) == state.usable
        assert bool(state.reason) == bool(state.cure) == (not state.usable)
        assert state.engine
    assert omb.availability()["OrtCpu"].devices == ("CPU",)
