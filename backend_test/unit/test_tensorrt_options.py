# SPDX-License-Identifier: Apache-2.0
"""Every option that a TensorRT preset sets is one that the installed ONNX Runtime knows; needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort import calibration_table
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.ort_tensorrt import profile_shapes

TENSORRT = "TensorrtExecutionProvider"
PRESETS: dict[str, dict[str, Any]] = {
    "OrtTensorrt": {"provider_options": {"trt_builder_optimization_level": 4, "trt_cuda_graph_enable": True}},
    "OrtTensorrtFloat": {},
    "OrtTensorrtFloatOptim": {},
    "OrtTensorrtInt8": {"calibration_table": {"x": (-1.0, 2.0), "xw": 3.0}},
    "OrtTensorrtInt8QDQ": {},
}


def options_of(name: str, *, device: str | None = None, model: Any = None, **options: Any) -> Mapping[str, str]:
    """What a preset sets on its provider, fixed shapes included."""
    preset = omb.presets()[name]
    parsed, settings = preset._settle(device, {**PRESETS[name], **options})
    target = preset.make_target(settings, parsed, load(model or models.linear()))
    ((provider, chosen),) = target.providers
    assert provider == TENSORRT
    return {**chosen, **target.shape_options({"x": (2, 3), "scalar": ()})}


def refusal(options: Mapping[str, str]) -> str | None:
    """ONNX Runtime's complaint about the options; None: it knows them all.

    It reads the options before it loads TensorRT. On a host without TensorRT options that are right end in an
    InvalidArgument ("Provider configuration is not supported"), wrong ones in a RuntimeError that names them.
    """
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    onnxruntime.set_default_logger_severity(4)
    try:
        onnxruntime.SessionOptions().add_provider(TENSORRT, dict(options))
    except InvalidArgument as error:
        return None if "Provider configuration is not supported" in str(error) else str(error)
    except RuntimeError as error:
        return str(error)
    finally:
        onnxruntime.set_default_logger_severity(2)
    return None


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "not cached"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_option_is_accepted(gpu_wheel: Path, tmp_path: Path, name: str, cached: bool) -> None:
    options = options_of(name, cache_dir=tmp_path if cached else False)
    assert refusal(options) is None
    assert ("trt_engine_cache_enable" in options) is cached


@pytest.mark.parametrize("name", PRESETS)
def test_each_option_would_be_refused_if_it_were_misspelt(gpu_wheel: Path, tmp_path: Path, name: str) -> None:
    options = options_of(name, cache_dir=tmp_path)
    assert len(options) > 3
    for key in options:
        misspelt = {(k[:-1] + "_" if k == key else k): v for k, v in options.items()}
        told = refusal(misspelt)
        assert told is not None, key
        assert key[:-1] + "_" in told


def test_a_boolean_that_is_no_word_is_refused(gpu_wheel: Path) -> None:
    assert refusal({"trt_fp16_enable": "1"}) is not None
    assert refusal({"trt_fp16_enable": "True"}) is None


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "not cached"])
def test_what_each_preset_asks_of_tensorrt(ort_cpu: type[omb.Preset], tmp_path: Path, cached: bool) -> None:
    made = {name: options_of(name, cache_dir=tmp_path if cached else False) for name in PRESETS}

    def precision(name: str) -> tuple[str | None, str | None]:
        return made[name].get("trt_fp16_enable"), made[name].get("trt_int8_enable")

    assert precision("OrtTensorrt") == (None, None)
    assert precision("OrtTensorrtFloat") == ("False", "False")
    assert precision("OrtTensorrtFloatOptim") == ("True", "False")
    assert precision("OrtTensorrtInt8") == ("True", "True")
    assert precision("OrtTensorrtInt8QDQ") == ("True", "True")
    assert made["OrtTensorrt"]["trt_builder_optimization_level"] == "4"
    assert made["OrtTensorrt"]["trt_cuda_graph_enable"] == "True"
    assert made["OrtTensorrtInt8"]["trt_int8_use_native_calibration_table"] == "False"
    assert options_of("OrtTensorrtInt8", trt_fp16_enable=False, cache_dir=False)["trt_fp16_enable"] == "False"
    assert options_of("OrtTensorrtInt8QDQ", trt_fp16_enable=False, cache_dir=False)["trt_fp16_enable"] == "False"


def test_the_device_index_reaches_the_provider(tmp_path: Path) -> None:
    for device, index in ((None, "0"), ("CUDA", "0"), ("CUDA:3", "3")):
        assert options_of("OrtTensorrtFloat", device=device, cache_dir=False)["device_id"] == index


def test_the_users_options_win(tmp_path: Path) -> None:
    options = options_of(
        "OrtTensorrt", provider_options={"trt_engine_cache_enable": False, "trt_fp16_enable": True}, cache_dir=tmp_path
    )
    assert options["trt_engine_cache_enable"] == "False"
    assert options["trt_fp16_enable"] == "True"


def test_the_calibration_table_lies_where_the_provider_looks_for_it(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    for cache_dir in (tmp_path, False):
        options = options_of("OrtTensorrtInt8", cache_dir=cache_dir)
        path = Path(options["trt_engine_cache_path"]) / options["trt_int8_calibration_table_name"]
        assert calibration_table.read("calibration_table", path) == {"x": 2.0, "xw": 3.0}


def test_a_table_of_another_model_is_refused() -> None:
    with pytest.raises(omb.CalibrationTableError, match="fits another model"):
        options_of("OrtTensorrtInt8", calibration_table={"conv1": 1.0}, cache_dir=False)


def test_an_engine_is_never_taken_for_that_of_another_model_option_or_table(
    ort_cpu: type[omb.Preset], tmp_path: Path
) -> None:
    def folder(name: str = "OrtTensorrtInt8", **options: Any) -> str:
        return options_of(name, cache_dir=tmp_path, **options)["trt_engine_cache_path"]

    assert folder() == folder()
    other = models.linear()
    other.graph.node[1].op_type = "Sub"
    folders = [
        folder(),
        folder(model=other),
        folder(trt_fp16_enable=False),
        folder(device="CUDA:1"),
        folder(calibration_table={"x": 2.0, "xw": 4.0}),
        folder("OrtTensorrtInt8QDQ"),
        folder("OrtTensorrtFloat"),
        folder("OrtTensorrtFloatOptim"),
    ]
    assert len(set(folders)) == len(folders)


def test_without_a_cache_dir_builds_are_kept_in_the_users_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ONNX_MULTI_BACKEND_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert options_of("OrtTensorrtFloat")["trt_engine_cache_path"].startswith(str(tmp_path / "user"))
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_DIR", str(tmp_path / "named"))
    assert options_of("OrtTensorrtFloat")["trt_engine_cache_path"].startswith(str(tmp_path / "named"))
    assert "trt_engine_cache_path" not in options_of("OrtTensorrtFloat", cache_dir=False)


def test_a_profile_has_three_equal_sides_and_no_scalars() -> None:
    profile = profile_shapes({"a": (1, 3), "b": (2,), "scalar": ()})
    assert profile == {f"trt_profile_{side}_shapes": "a:1x3,b:2" for side in ("min", "opt", "max")}
    assert profile_shapes({"scalar": ()}) == {}
