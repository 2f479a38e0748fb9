# SPDX-License-Identifier: Apache-2.0
"""Plugin execution providers are found, listed, and taken by name; one that is broken says why and harms no other."""

from __future__ import annotations

import json
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli, cli  # noqa: F401  # a fixture
from onnx_multi_backend.engines.ort import plugins

MODEL = models.relu()
X = np.float32([[1, -2, 3]])
CPU = "CPUExecutionProvider"

Fresh = Callable[..., str]


def package(folder: Path, name: str, source: str, version: str = "") -> None:
    """A module, and its distribution where it has a version."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(textwrap.dedent(source))
    if version:
        distribution = name.replace("_", "-")
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


LISTED = """
import json, dataclasses
from onnx_multi_backend.engines.ort import plugin_listing
print(json.dumps([dataclasses.asdict(p) for p in plugin_listing.installed()]))
"""


@pytest.fixture
def fakes(tmp_path: Path, ort_cpu: type[omb.Preset]) -> Path:
    """Packages as they may be: no library, a file that is none, one that raises, one that only sounds like a plugin."""
    package(
        tmp_path,
        "onnxruntime_ep_fake",
        """
        def get_library_path(): return "/no/such/library.so"
        def get_ep_name(): return "FakeExecutionProvider"
        """,
        "1.2",
    )
    package(
        tmp_path,
        "onnxruntime_text",
        """
        def get_library_path(): return __file__
        def get_ep_names(): return ["TextExecutionProvider", "OtherExecutionProvider"]
        """,
    )
    package(tmp_path, "onnxruntime_ep_broken", "raise ZeroDivisionError('it divides by zero')")
    package(tmp_path, "onnxruntime_ep_empty", "")
    package(tmp_path, "onnxruntime_sounds_like_one", "raise SystemError('nobody imports this')")
    return tmp_path


def test_every_installed_plugin_is_listed_and_a_broken_one_says_why(fresh: Fresh, fakes: Path) -> None:
    listed: dict[str, Any] = {p["name"] or p["module"]: p for p in json.loads(fresh(LISTED, fakes))}
    assert "onnxruntime_sounds_like_one" not in listed
    assert "/no/such/library.so" in listed["onnxruntime_ep_fake"]["reason"]
    assert listed["onnxruntime_ep_fake"]["release"] == "onnxruntime-ep-fake 1.2"
    assert listed["onnxruntime_ep_broken"]["reason"].endswith("ZeroDivisionError: it divides by zero")
    assert "no get_library_path()" in listed["onnxruntime_ep_empty"]["reason"]
    for name in ("TextExecutionProvider", "OtherExecutionProvider"):
        assert listed[name]["module"] == "onnxruntime_text"
        assert "cannot be loaded by onnxruntime" in listed[name]["reason"]
    assert all(not p["devices"] for p in listed.values() if "fake" in p["module"] or "text" in p["module"])


def test_a_broken_plugin_leaves_the_presets_as_they_are(fresh: Fresh, fakes: Path) -> None:
    code = "import onnx_multi_backend as omb; print({n: s.usable for n, s in omb.availability().items()})"
    assert fresh(code, fakes) == fresh(code)


def test_a_provider_whose_plugin_cannot_be_loaded_is_refused_with_the_reason(fresh: Fresh, fakes: Path) -> None:
    code = """
import onnx_multi_backend as omb
from backend_test.unit import models
try:
    omb.OrtBackend(models.relu(), "TextExecutionProvider")
except omb.DeviceUnavailableError as error:
    print(error)
"""
    root = Path(__file__).parents[2]
    told = fresh(code, fakes, root)
    assert "onnxruntime_text cannot be loaded by onnxruntime" in told
    assert "Install a version of the plugin that fits onnxruntime" in told


def test_only_the_package_that_names_a_provider_is_imported_for_it(fresh: Fresh, fakes: Path) -> None:
    package(
        fakes,
        "onnxruntime_ep_wanted",
        "def get_library_path(): return __file__\ndef get_ep_names(): return ['WantedExecutionProvider']",
    )
    code = """
import sys
from onnx_multi_backend.engines.ort import plugins
print(plugins.find("WantedExecutionProvider")[0].name, "onnxruntime_ep_broken" in sys.modules, "onnxruntime_text" in sys.modules)
"""
    assert fresh(code, fakes) == "onnxruntime_ep_wanted False False"


def test_folders_archives_and_what_is_neither_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ort_cpu: type[omb.Preset]
) -> None:
    package(tmp_path, "onnxruntime_ep_here", "")
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("onnxruntime_ep_packed/__init__.py", "")
    (tmp_path / "file").write_text("")
    places = [str(tmp_path), str(archive), str(tmp_path / "file"), str(tmp_path / "none"), b"bytes"]
    monkeypatch.setattr(sys, "path", [*places, *sys.path])
    assert {"onnxruntime_ep_here", "onnxruntime_ep_packed"} <= set(plugins.modules())


def test_what_the_wheel_was_built_with_does_not_change(ort_cpu: type[omb.Preset]) -> None:
    before = plugins.of_wheel()
    omb.availability()
    assert plugins.of_wheel() == before
    assert before[-1] == CPU
    assert plugins.built_in(CPU)
    assert not plugins.built_in("NoSuchExecutionProvider")


NOT_A_PLUGIN: dict[str, tuple[str, str]] = {
    "a path without a file": ("/no/such/library.so", "is not a file"),
    "a folder": ("/", "is not a file"),
    "a file that is not a library": (__file__, "cannot be loaded by onnxruntime"),
    "no such module": ("no_such_module", "No module named 'no_such_module'"),
    "a module that is none": ("json", r"has no get_library_path\(\)"),
}


@pytest.mark.parametrize("case", NOT_A_PLUGIN)
def test_what_is_no_plugin_is_refused(ort_cpu: type[omb.Preset], case: str) -> None:
    given, reason = NOT_A_PLUGIN[case]
    for plugin in (given, Path(given)) if "/" in given else (given,):
        with pytest.raises(omb.OptionError, match=reason):
            omb.OrtBackend(MODEL, "SomeExecutionProvider", plugin=plugin)


@pytest.mark.parametrize("plugin", [3, "", b"x", ["onnxruntime_ep_webgpu"]])
def test_a_plugin_is_named_by_a_word_or_a_path(plugin: object) -> None:
    with pytest.raises(omb.OptionTypeError, match="plugin is a module's name or the path of a library"):
        omb.OrtBackend(MODEL, CPU, plugin=plugin)


def test_a_plugin_without_the_provider_names_those_that_it_has(ort_cpu: type[omb.Preset]) -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="the plugin EP is not installed")
    with pytest.raises(omb.OptionError, match="has no SomeExecutionProvider; it has OpenVINOExecutionProvider"):
        omb.OrtBackend(MODEL, "SomeExecutionProvider", plugin="onnxruntime_ep_openvino")


def test_a_plugin_without_its_hardware_says_so(no_gpu: None, ort_cpu: type[omb.Preset]) -> None:
    pytest.importorskip("onnxruntime_ep_webgpu", reason="onnxruntime-ep-webgpu is not installed")
    for options in ({}, {"plugin": "onnxruntime_ep_webgpu"}):
        with pytest.raises(omb.DeviceUnavailableError, match="onnxruntime_ep_webgpu offers no device.*no hardware"):
            omb.OrtBackend(MODEL, "WebGpuExecutionProvider", **options)


def test_nvidias_plugin_says_what_the_host_lacks(no_gpu: None, ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match=r"NVIDIA driver|has no NvTensorRTRTXExecutionProvider"):
        omb.OrtBackend(MODEL, "NvTensorRTRTXExecutionProvider")


@pytest.fixture
def ggml() -> Any:
    return pytest.importorskip("onnxruntime_ggml", reason="onnxruntime-ggml is not installed (nox -s plugins)")


def test_a_plugin_computes_on_the_cpu(ggml: Any) -> None:
    size = 8
    weights = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    made = models.model(
        [models.node("MatMul", ["x", "w"], ["m"]), models.node("Relu", ["m"], ["y"])],
        [models.tensor("x", [2, size])],
        [models.tensor("y", [2, size])],
        initializers={"w": weights},
    )
    x = np.random.default_rng(2).standard_normal((2, size)).astype(np.float32)
    for options in ({}, {"plugin": "onnxruntime_ggml"}, {"plugin": ggml.library_path()}):
        rep = omb.OrtBackend(made, "ggml", **options)
        assert {n.provider for n in rep.placement()} == {"ggml"}
        assert rep.get_providers() == ["ggml", CPU]
        np.testing.assert_allclose(rep.run(x)[0], np.maximum(x @ weights, 0), atol=2e-2)  # its weights are float16
    assert not plugins.built_in("ggml")


def test_a_device_that_a_plugin_lacks_is_refused_with_those_it_has(ggml: Any) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match="offers no device 'GPU' on this host; it offers CPU"):
        omb.OrtBackend(MODEL, "ggml", device="GPU")


def test_a_plugin_that_the_user_registered_is_used_as_it_is(ggml: Any, fresh: Fresh) -> None:
    code = """
import onnxruntime, onnxruntime_ggml
onnxruntime.register_execution_provider_library("ggml", onnxruntime_ggml.library_path())
import onnx_multi_backend as omb
from onnx_multi_backend.engines.ort import plugins
from backend_test.unit import models
rep = omb.OrtBackend(models.relu(), "ggml", plugin="onnxruntime_ggml")
listed = onnxruntime.get_available_providers()
print(rep.get_providers()[0], "ggml" in listed, plugins.built_in("ggml"), len(plugins.devices("ggml")))
"""
    assert fresh(code, Path(__file__).parents[2]) == "ggml True False 1"


def test_a_model_on_a_plugin_is_prepared_again_where_it_is_unpickled(ggml: Any) -> None:
    import pickle

    rep = pickle.loads(pickle.dumps(omb.OrtBackend(MODEL, "ggml", plugin=Path(ggml.library_path()))))
    assert [n.provider for n in rep.placement()] == ["ggml"]
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))


def test_the_command_lists_what_is_installed(cli: Cli) -> None:  # noqa: F811
    content = json.loads(cli("presets", "--json").out)
    if omb.availability()["OrtCpu"].usable:
        assert {p["module"] for p in content["plugins"]} == set(plugins.modules())
    text = cli("presets").out
    for plugin in content["plugins"]:
        assert plugin["release"] in text
        assert plugin["devices"] or plugin["reason"]
