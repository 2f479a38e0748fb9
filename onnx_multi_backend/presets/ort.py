# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with any execution provider, and what every ONNX Runtime preset shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from onnx_multi_backend import devices
from onnx_multi_backend.devices import Device, Problem
from onnx_multi_backend.engines.ort import providers, runtime
from onnx_multi_backend.engines.ort.options import check_session_options
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.options import REQUIRED, Option, anything, provider_options
from onnx_multi_backend.preset import Preset


class OrtPreset(Preset):
    """A preset on ONNX Runtime.

    Attributes
    ----------
    provider : str
        The execution provider.
    """

    provider: ClassVar[str]

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        """What the preset sets on its provider."""
        return {}

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> Any:
        """What the preset sets on the session."""
        return None

    @classmethod
    def _target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        return OrtTarget(
            cls.name,
            ((cls.provider, cls._provider_options(settings, device, loaded)),),
            device,
            settings["fallback"],
            cls._session_options(settings),
        )

    @classmethod
    def _why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        return providers.why_unusable(cls.provider, device)

    @classmethod
    def _usable_devices(cls) -> tuple[str, ...]:
        return providers.usable_devices(cls.provider)

    @classmethod
    def _engine(cls) -> str:
        return runtime.describe()


def thread_options(settings: Mapping[str, Any]) -> dict[str, int]:
    """The session's thread counts, where they are set."""
    names = ("inter_op_num_threads", "intra_op_num_threads")
    return {name: settings[name] for name in names if settings.get(name) is not None}


def _provider_names(name: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if not names or not all(isinstance(n, str) and n for n in names):
        raise OptionTypeError(f"{name} is a provider's name or a priority list of names; {value!r} was given.")
    return names


def _options_by_provider(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [provider_options(name, v) for v in value]
    return provider_options(name, value)


class OrtBackend(OrtPreset):
    """ONNX Runtime with any execution provider by name, built-in or plugin.

    ``provider_options`` is one mapping for the first provider, or a list with a mapping for each.
    """

    name = "Ort"
    family = devices.ANY
    options = (
        Option("provider_name", _provider_names, REQUIRED, "a provider's name or a priority list of names"),
        Option("provider_options", _options_by_provider, doc="its options by name, or a list for a list of providers"),
        Option("session_options", anything, doc="a mapping of names to values, or an onnxruntime.SessionOptions"),
    )

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        names, options = settings["provider_name"], settings["provider_options"]
        if len(set(names)) != len(names):
            raise OptionError(f"Each execution provider is named once; {', '.join(names)} was given.")
        if isinstance(options, list) and len(options) != len(names):
            raise OptionError(f"provider_options has {len(options)} mappings for {len(names)} providers.")
        if settings["session_options"] is not None:
            check_session_options(settings["session_options"])

    @classmethod
    def _target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        names, options = settings["provider_name"], settings["provider_options"]
        by_provider = options if isinstance(options, list) else [options, *({} for _ in names[1:])]
        chosen = tuple(
            (name, {**(_device_option(name, device) if i == 0 else {}), **given})
            for i, (name, given) in enumerate(zip(names, by_provider, strict=True))
        )
        return OrtTarget(cls.name, chosen, device, settings["fallback"], settings["session_options"])

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        return providers.family(settings["provider_name"][0]).parse(device, settings["provider_name"][0])

    @classmethod
    def _why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        names = settings.get("provider_name") or (_usual_provider(device),)
        if device.text and not providers.family(names[0]).knows(device.text):
            return Problem(f"{names[0]} knows no device {device.text!r}", "Name one of the provider's own devices")
        for i, name in enumerate(names):
            first = i == 0 and device.text
            problem = providers.why_unusable(name, device if first else Device(providers.default_device(name)))
            if problem is not None:
                return problem
        return None

    @classmethod
    def _usable_devices(cls) -> tuple[str, ...]:
        found: list[str] = []
        for name in (providers.CPU, providers.CUDA, providers.OPENVINO):
            found += [d for d in providers.usable_devices(name) if d not in found]
        return tuple(found)


def _usual_provider(device: Device) -> str:
    """The provider that a device makes think of, where none was named."""
    return {"": providers.CPU, "CPU": providers.CPU, "CUDA": providers.CUDA}.get(device.kind, providers.OPENVINO)


def _device_option(provider: str, device: Device) -> dict[str, str]:
    if not device.text:
        return {}
    if provider in (providers.CUDA, providers.TENSORRT):
        return {"device_id": str(device.index)}
    if provider == providers.OPENVINO and providers.built_in(provider):
        return {"device_type": device.text}
    return {}
