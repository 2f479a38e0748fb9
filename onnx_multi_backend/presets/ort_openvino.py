# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on OpenVINO, through the built-in execution provider or the plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from onnx_multi_backend import option_words
from onnx_multi_backend.cache.folder import resolve
from onnx_multi_backend.engines.ort import plugins, providers
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.errors import CacheWarning, OptionError, PresetWarning
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.presets import precision
from onnx_multi_backend.presets.contradiction import refuse, settled_device
from onnx_multi_backend.presets.knobs import THREADS, Choice, Host, Knob, count_of, thread_knob
from onnx_multi_backend.presets.options import Option, anything, provider_options, threads
from onnx_multi_backend.presets.ort import OrtPreset, thread_options
from onnx_multi_backend.user_warnings import warn

_PROVIDER_OPTIONS = Option("provider_options", provider_options, doc="options of the OpenVINO execution provider")
_EXAMPLE = Option("input_example", anything, doc="one example of the inputs, in any of the three forms")
_ORT_THREADS = (
    Option("inter_op_num_threads", threads, doc="ONNX Runtime's threads that run nodes side by side"),
    Option("intra_op_num_threads", threads, doc="ONNX Runtime's threads inside one node"),
)

_OPENVINO_THREADS = Option("openvino_num_threads", threads, doc="OpenVINO's threads")


def _num_threads(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    chosen = settings.get("openvino_num_threads")
    return {} if chosen is None else {name: str(chosen)}


def _config(preset: str, options: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """OpenVINO's properties by device, as the user wrote them into ``load_config``."""
    text = options.get("load_config", "{}")
    try:
        config = json.loads(text)
    except ValueError as error:
        config = None
        fault = f" ({error})"
    else:
        fault = ""
    if not isinstance(config, dict) or not all(isinstance(v, dict) for v in config.values()):
        raise OptionError(
            f"{preset}: load_config is OpenVINO's properties by device in JSON, such as "
            f'\'{{"CPU": {{"NUM_STREAMS": "2"}}}}\'; {text!r} was given{fault}.'
        )
    return config


def _with_config(
    preset: str, given: Mapping[str, str], device: Device, properties: Mapping[str, str]
) -> dict[str, str]:
    """The user's options with properties of OpenVINO in ``load_config``; those that are there already stay."""
    if not properties:
        return dict(given)
    config = _config(preset, given)
    return {**given, "load_config": json.dumps({**config, device.kind: {**properties, **config.get(device.kind, {})}})}


#: On the CPU, which AUTO may choose, importing takes 1.05 to 1.12 times as long as compiling, and recurrent layers come back wrong.
_KEPT_ON = ("GPU", "NPU")
UNKEPT = (
    "on the CPU the OpenVINO execution provider's own cache makes a start slower, and the plugin has none. OrtCpu and Openvino "
    "keep models"
)

#: What the built-in execution provider's option ``precision`` stands for.
_BUILT_IN_PRECISIONS = {"FP32": "f32", "FP16": "f16", "ACCURACY": "f32"}


def _precisions(preset: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where the provider's options name a precision, and which."""
    if "precision" in options:
        written = options["precision"]
        yield option_words.given("provider_options", {"precision": written}), _BUILT_IN_PRECISIONS.get(written, written)
    for name, properties in _config(preset, options).items():
        if precision.HINT in properties:
            yield (
                f"{precision.HINT} {properties[precision.HINT]!r} for {name} in load_config",
                properties[precision.HINT],
            )


class OrtOpenvinoBackend(OrtPreset):
    """ONNX Runtime's OpenVINO execution provider with the options you pass, computing float32 in float32 unless asked.

    ``precision="default"`` leaves the precision to OpenVINO, which takes bfloat16 or float16 where the device has it.
    ``precision="bf16"``, or ``INFERENCE_PRECISION_HINT`` in the provider's option ``load_config``, asks for one.
    """

    name = "OrtOpenvino"
    family = devices.OPENVINO
    provider = providers.OPENVINO
    options: ClassVar[tuple[Option, ...]] = (
        _PROVIDER_OPTIONS,
        _EXAMPLE,
        *_ORT_THREADS,
        precision.OPTION,
        precision.POLICY,
    )

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        super()._check_settings(settings)
        cls._hint(settings)
        named = settings.get("provider_options", {}).get("cache_dir")
        if settings["cache_dir"] is False and named:
            raise refuse(
                cls.name,
                option_words.given("cache_dir", False),
                option_words.given("provider_options", {"cache_dir": named}),
            )

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        given = settings.get("provider_options", {})
        if isinstance(device, str) and device == given.get("device_type"):
            return Device(device)
        parsed = super()._parse_device(device, settings)
        return settled_device(cls.name, device, parsed, "device_type", given, by_index=False)

    @classmethod
    def _hint(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        return precision.hint(cls.name, settings, _precisions(cls.name, settings.get("provider_options", {})))

    @classmethod
    def _keeps(cls, device: Device) -> bool:
        """Whether the provider keeps what OpenVINO compiled."""
        return device.kind in _KEPT_ON and plugins.built_in(cls.provider)

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        given = settings.get("provider_options", {})
        hint = precision.on_device(cls._hint(settings), device.kind)
        if loaded is not None and settings["cache_dir"] not in (None, False) and not cls._keeps(device):
            warn(
                f"{cls.name} keeps nothing of {loaded.label} in the cache: {UNKEPT}. {option_words.given('cache_dir', False)} avoids this warning.",
                CacheWarning,
            )
        if not plugins.built_in(cls.provider):  # the plugin takes its device from an OrtEpDevice
            return _with_config(cls.name, given, device, {**hint, **_num_threads("INFERENCE_NUM_THREADS", settings)})
        chosen = {"device_type": device.text, **_num_threads("num_of_threads", settings)}
        if hint.get(precision.HINT) == "f32":
            # FP32 is offered on these two alone; ACCURACY keeps the model's own types.
            chosen["precision"] = "FP32" if device.kind in ("CPU", "GPU") else "ACCURACY"
            del hint[precision.HINT]
        folder = resolve(settings["cache_dir"], slow_builds=False)
        if folder is not None and loaded is not None and cls._keeps(device):
            parts = (sorted({**chosen, **hint}.items()), sorted(given.items()))
            folder = cls._kept_by_engine(folder, "ort_openvino", loaded, *parts)
            if folder is not None:
                chosen["cache_dir"] = str(folder)
        return {**chosen, **_with_config(cls.name, given, device, hint)}

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        target = super().make_target(settings, device, loaded)
        ((name, chosen),) = target.providers
        return replace(
            target,
            providers=((providers.on_device(name, device), chosen),),
            precision_policy=settings["precision_policy"],
        )

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return dict(thread_options(settings))

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        from onnx_multi_backend.presets.openvino_knobs import precision_knob

        has = {option.name for option in cls.options}
        knobs = [precision_knob(host)] if "precision" in has else []
        counts = host.thread_counts if host.device == "CPU" else []
        if counts and "openvino_num_threads" in has:
            knobs.append(thread_knob(host, "openvino_num_threads"))
        elif counts:
            knobs.append(Knob(THREADS, tuple(cls._thread_choice(n) for n in counts)))
        return tuple(knobs)

    @classmethod
    def _thread_choice(cls, count: int) -> Choice:
        if plugins.built_in(cls.provider):
            chosen = {"num_of_threads": str(count)}
        else:
            chosen = {"load_config": json.dumps({"CPU": {"INFERENCE_NUM_THREADS": str(count)}})}
        return Choice(count_of(count, "thread"), {"provider_options": chosen})


class OrtOpenvinoFloatBackend(OrtOpenvinoBackend):
    """ONNX Runtime's OpenVINO execution provider, computing float32 in float32 on every device.

    A model with Q/DQ nodes keeps what they ask for: OpenVINO computes int8 from them here too.
    """

    name = "OrtOpenvinoFloat"
    options = (_EXAMPLE, *_ORT_THREADS, _OPENVINO_THREADS, precision.POLICY)


class OrtOpenvinoInt8Backend(OrtOpenvinoBackend):
    """ONNX Runtime's OpenVINO execution provider, int8 where the model's Q/DQ nodes say so.

    ONNX Runtime leaves the Q/DQ nodes as they are, double ones included, so that they reach OpenVINO, which computes
    int8 from them. (``session.disable_quant_qdq`` would not: it folds the weights' DequantizeLinear nodes into floats.)
    """

    name = "OrtOpenvinoInt8"
    options = (_EXAMPLE, *_ORT_THREADS, _OPENVINO_THREADS, precision.OPTION, precision.POLICY)

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        if loaded is not None and not is_quantized(loaded.proto):
            warn(
                f"{cls.name}: {loaded.label} has no QuantizeLinear nodes, so nothing of it runs in int8. Quantize it "
                "first (onnx_multi_backend.calibration.quantize), or use OrtOpenvinoFloat.",
                PresetWarning,
            )
        return super().make_target(settings, device, loaded)

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**thread_options(settings), "session.disable_double_qdq_remover": "1"}
