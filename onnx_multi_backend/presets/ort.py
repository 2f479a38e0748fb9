# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with any execution provider, and what every ONNX Runtime preset shares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.ort import plugins, providers, runtime
from onnx_multi_backend.engines.ort.options import check_session_options
from onnx_multi_backend.engines.ort.plugins import Plugin
from onnx_multi_backend.engines.ort.records import record
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device, Problem
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.contradiction import refuse, settled_device
from onnx_multi_backend.presets.options import REQUIRED, Option, anything, provider_options


class OrtPreset(Preset):
    """A preset on ONNX Runtime.

    Attributes
    ----------
    provider : str
        The execution provider.
    """

    provider: ClassVar[str]
    family_options = (
        Option(
            "session_options",
            anything,
            doc="a mapping of names to values, or an onnxruntime.SessionOptions",
            positional=False,
        ),
    )

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
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        return OrtTarget(
            cls.name,
            ((cls.provider, cls._provider_options(settings, device, loaded)),),
            device,
            settings["fallback"],
            with_own_session_options(cls.name, settings["session_options"], cls._session_options(settings)),
        )

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        if settings["session_options"] is not None:
            check_session_options(settings["session_options"])

    @classmethod
    def why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        return providers.why_unusable(cls.provider, device)

    @classmethod
    def usable_devices(cls) -> tuple[str, ...]:
        return providers.usable_devices(cls.provider)

    @classmethod
    def engine_version(cls) -> str:
        return providers.describe(cls.provider)


def with_own_session_options(preset: str, given: Any, own: Mapping[str, Any] | None) -> Any:
    """The user's session options beside what a preset sets.

    Raises
    ------
    OptionError
        They contradict each other, or the preset's cannot be added to the user's object.
    """
    if given is None:
        return own
    if not own:
        return given
    if not isinstance(given, Mapping):
        raise OptionError(
            f"{preset} sets {', '.join(own)} itself, which would alter your onnxruntime.SessionOptions. Pass session_options as a "
            "mapping of names to values."
        )
    for name in own.keys() & given.keys():
        if str(own[name]) != str(given[name]):
            raise refuse(
                preset,
                option_words.given("session_options", {name: given[name]}),
                f"the preset's {name}={own[name]!r}",
            )
    return {**own, **given}


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


def _plugin(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise OptionTypeError(f"{name} is a module's name or the path of a library; {value!r} was given.")
    return os.fspath(value)


class OrtBackend(OrtPreset):
    """ONNX Runtime with any execution provider by name, built-in or plugin.

    An installed package with a plugin is found by itself; ``plugin`` names a module or a library file that is not.
    ``provider_options`` is one mapping for the first provider, or a list with a mapping for each.
    """

    name = "Ort"
    family = devices.ANY
    options = (
        Option("provider_name", _provider_names, REQUIRED, "a provider's name or a priority list of names"),
        Option("provider_options", _options_by_provider, doc="its options by name, or a list for a list of providers"),
        Option("session_options", anything, doc="a mapping of names to values, or an onnxruntime.SessionOptions"),
        Option("plugin", _plugin, doc="module or library file that brings the first provider", positional=False),
    )

    @classmethod
    def _plugin(cls, settings: Mapping[str, Any]) -> Plugin | None:
        """The plugin that the user named, registered."""
        named = settings.get("plugin")
        if named is None or runtime.why_missing() is not None:
            return None
        try:
            return plugins.named(named, settings["provider_name"][0])
        except plugins.PluginError as error:
            raise OptionError(
                f"{cls.name}: plugin {named!r} {error}. Name a module that has get_library_path(), or a plugin's library."
            ) from error

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        super()._check_settings(settings)
        names, options = settings["provider_name"], settings["provider_options"]
        if len(set(names)) != len(names):
            raise OptionError(f"An execution provider is named twice: {', '.join(names)}. Name each once.")
        if isinstance(options, list) and len(options) != len(names):
            raise OptionError(f"provider_options has {len(options)} mappings for {len(names)} providers.")
        cls._plugin(settings)

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> OrtTarget:
        names, options = settings["provider_name"], settings["provider_options"]
        plugin = cls._plugin(settings)
        by_provider = options if isinstance(options, list) else [options, *({} for _ in names[1:])]
        chosen = tuple(
            (
                providers.on_device(name, device, plugin=plugin is not None) if i == 0 else name,
                {**(_device_option(name, device, plugin) if i == 0 else {}), **given},
            )
            for i, (name, given) in enumerate(zip(names, by_provider, strict=True))
        )
        target = OrtTarget(cls.name, chosen, device, settings["fallback"], settings["session_options"])
        return target if plugin is None else replace(target, library=plugin.library)

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        name, options = settings["provider_name"][0], settings["provider_options"]
        parsed = providers.family(name).parse(device, name)
        known = record(name, plugin=settings.get("plugin") is not None or None)
        if not known.device_option:
            return parsed
        given = options[0] if isinstance(options, list) else options
        return settled_device(cls.name, device, parsed, known.device_option, given, by_index=known.device_by_index)

    @classmethod
    def why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        names = settings.get("provider_name") or (_usual_provider(device),)
        if device.text and not providers.family(names[0]).knows(device.text):
            return Problem(f"{names[0]} knows no device {device.text!r}", "Name one of the provider's own devices")
        for i, name in enumerate(names):
            wanted = device if i == 0 and device.text else Device(providers.default_device(name))
            if i == 0 and (plugin := cls._plugin(settings)) is not None:
                problem = providers.why_not_offered(name, wanted, plugin, plugin.library)
            else:
                problem = providers.why_unusable(name, wanted)
            if problem is not None:
                return problem
        return None

    @classmethod
    def usable_devices(cls) -> tuple[str, ...]:
        found: list[str] = []
        for name in (providers.CPU, providers.CUDA, providers.OPENVINO):
            found += [d for d in providers.usable_devices(name) if d not in found]
        return tuple(found)

    @classmethod
    def engine_version(cls) -> str:
        return runtime.describe()


def _usual_provider(device: Device) -> str:
    """The provider that a device makes think of, where none was named."""
    return {"": providers.CPU, "CPU": providers.CPU, "CUDA": providers.CUDA}.get(device.kind, providers.OPENVINO)


def _device_option(provider: str, device: Device, plugin: Plugin | None) -> dict[str, str]:
    if not device.text:
        return {}
    known = record(provider, plugin=plugin is not None or None)
    if not known.device_option:
        return {}
    return {known.device_option: str(device.index) if known.device_by_index else device.text}
