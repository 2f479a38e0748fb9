# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on NVIDIA GPUs through TensorRT."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from onnx_multi_backend.cache.folder import resolve
from onnx_multi_backend.engines.ort import calibration_table, providers, qdq, tensorrt
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.loading import LoadedModel, changed
from onnx_multi_backend.presets.contradiction import settled_device
from onnx_multi_backend.presets.knobs import Host, Knob, provider_knob
from onnx_multi_backend.presets.options import REQUIRED, Option, anything, flag, provider_options
from onnx_multi_backend.presets.ort import OrtPreset

_EXAMPLE = Option("input_example", anything, doc="one example of the inputs, in any of the three forms")
_FP16 = Option("trt_fp16_enable", flag, True, "let layers that gain nothing from int8 run in float16")


def profile_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """TensorRT's optimization profile for one set of input shapes: minimum, optimum and maximum alike."""
    written = ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items() if shape)
    return {f"trt_profile_{which}_shapes": written for which in ("min", "opt", "max")} if written else {}


class OrtTensorrtBackend(OrtPreset):
    """ONNX Runtime's TensorRT execution provider with its own defaults and the options you pass.

    TensorRT compiles for fixed shapes: each new set of input shapes makes a new engine, and the last few are kept.
    """

    name = "OrtTensorrt"
    family = devices.CUDA
    provider = providers.TENSORRT
    fixed_shapes = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("provider_options", provider_options, doc="options of the TensorRT execution provider"),
        _EXAMPLE,
    )

    #: What this preset sets. Booleans are the words True and False (ONNX Runtime refuses 1).
    sets: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        parsed = super()._parse_device(device, settings)
        given = settings.get("provider_options", {})
        return settled_device(cls.name, device, parsed, "device_id", given, by_index=True)

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        chosen = {"device_id": str(device.index), **cls.sets}
        if "trt_fp16_enable" in settings:
            chosen["trt_fp16_enable"] = str(settings["trt_fp16_enable"])
        if tensorrt.is_typed():
            chosen = {name: value for name, value in chosen.items() if name not in tensorrt.GONE}
        chosen.update(settings.get("provider_options", {}))
        folder = resolve(settings["cache_dir"], slow_builds=True)
        if folder is not None and loaded is not None:
            # A folder for each model, version and set of options: an engine is never taken for another.
            parts = (*sorted(chosen.items()), *cls._cache_parts(settings))
            folder = cls._kept_by_engine(folder, "tensorrt", loaded, *parts)
        if folder is not None and loaded is not None:
            for name in ("engine", "timing"):
                chosen.setdefault(f"trt_{name}_cache_enable", "True")
                chosen.setdefault(f"trt_{name}_cache_path", str(folder))
        return chosen

    @classmethod
    def _cache_parts(cls, settings: Mapping[str, Any]) -> tuple[object, ...]:
        """What decides about an engine beside the provider's options."""
        return ()

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        return dataclasses.replace(super().make_target(settings, device, loaded), shape_options=profile_shapes)

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        if "provider_options" not in {option.name for option in cls.options}:
            return ()  # it is one point of this preset's space
        builder = provider_knob("builder", ("builder level 5", {"trt_builder_optimization_level": "5"}, True))
        if tensorrt.is_typed():
            return (builder,)
        return builder, provider_knob("precision", ("f16", {"trt_fp16_enable": "True"}, False))


class OrtTensorrtFloatBackend(OrtTensorrtBackend):
    """TensorRT in its default precision, float32."""

    name = "OrtTensorrtFloat"
    options = (_EXAMPLE,)
    sets: ClassVar[Mapping[str, str]] = {"trt_fp16_enable": "False", "trt_int8_enable": "False"}


class OrtTensorrtFloatOptimBackend(OrtTensorrtBackend):
    """TensorRT in its best float precision: float16 where it is faster, layer norms kept in float32."""

    name = "OrtTensorrtFloatOptim"
    computes_float32 = False
    options = (_EXAMPLE,)
    sets: ClassVar[Mapping[str, str]] = {
        "trt_fp16_enable": "True",
        "trt_layer_norm_fp32_fallback": "True",
        "trt_int8_enable": "False",
    }

    @classmethod
    def _handed_over(cls, settings: Mapping[str, Any], loaded: LoadedModel) -> LoadedModel:
        return changed(loaded, tensorrt.in_float16(loaded.with_all_weights())) if tensorrt.is_typed() else loaded


class OrtTensorrtInt8Backend(OrtTensorrtBackend):
    """TensorRT in int8, with the ranges of activations from a calibration table.

    From TensorRT 11 on, which reads no tables, the ranges are written into the model as Q/DQ nodes; what they leave is float32.
    """

    name = "OrtTensorrtInt8"
    computes_float32 = False
    options = (
        Option(
            "calibration_table",
            calibration_table.read,
            REQUIRED,
            "a path to ONNX Runtime's flatbuffers table, or a mapping of tensor name to range",
        ),
        _EXAMPLE,
        _FP16,
    )
    sets: ClassVar[Mapping[str, str]] = {"trt_int8_enable": "True", "trt_int8_use_native_calibration_table": "False"}

    @classmethod
    def _cache_parts(cls, settings: Mapping[str, Any]) -> tuple[object, ...]:
        return tuple(sorted(settings["calibration_table"].items()))

    @classmethod
    def _handed_over(cls, settings: Mapping[str, Any], loaded: LoadedModel) -> LoadedModel:
        if not tensorrt.is_typed():
            return loaded
        return changed(
            loaded, qdq.from_magnitudes(loaded.with_all_weights(), settings["calibration_table"], loaded.label)
        )

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        chosen = super()._provider_options(settings, device, loaded)
        if loaded is not None and not tensorrt.is_typed():
            ranges = settings["calibration_table"]
            calibration_table.check_fits(ranges, loaded)
            folder = calibration_table.write(ranges, chosen.get("trt_engine_cache_path"))
            chosen["trt_int8_calibration_table_name"] = calibration_table.FILE_NAME
            chosen["trt_engine_cache_path"] = folder  # where the execution provider looks for the table
        return chosen


class OrtTensorrtInt8QDQBackend(OrtTensorrtBackend):
    """TensorRT in int8, where the model's Q/DQ nodes say so."""

    name = "OrtTensorrtInt8QDQ"
    computes_float32 = False
    options = (_EXAMPLE, _FP16)
    sets: ClassVar[Mapping[str, str]] = {"trt_int8_enable": "True"}
