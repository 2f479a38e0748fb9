# SPDX-License-Identifier: Apache-2.0
"""Plugin execution providers: libraries that ONNX Runtime loads on request, and the packages that bring them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from onnx_multi_backend.engines.ort import errors, runtime
from onnx_multi_backend.host.devices import Device

_CPU = "CPUExecutionProvider"

#: Packages of plugins are named so. Of others with the first half of the name, the source tells.
_PREFIX, _SURE_PREFIX = "onnxruntime_", "onnxruntime_ep_"

#: What modules call the same things: the first is what packages of plugins agree on, the others occur.
_LIBRARY_NAMES = ("get_library_path", "library_path")
_EP_NAMES = ("get_ep_names", "get_ep_name", "EP_NAME")


class PluginError(Exception):
    """A plugin cannot be used; the message says why, as the rest of a sentence that begins with its name."""


@dataclass(frozen=True)
class Plugin:
    """A library of execution providers.

    Attributes
    ----------
    name : str
        The module that brings it, or the library's path.
    library : str
        The library's path.
    providers : tuple of str
        Names of its execution providers, as far as its module tells.
    """

    name: str
    library: str
    providers: tuple[str, ...] = ()

    @property
    def release(self) -> str:
        """The distribution and its version, ``onnxruntime-ep-openvino 1.8.1``; empty where it is a mere file."""
        return release_of(self.name)


def built_in(provider: str) -> bool:
    """Whether the installed wheel was built with this provider (which does not mean that it is usable)."""
    return provider in of_wheel()


def of_wheel() -> tuple[str, ...]:
    """The providers that the installed wheel was built with, by priority.

    ONNX Runtime lists the providers of registered plugins too, behind its own, and its own end with the CPU's. Source:
    ``kProvidersInPriorityOrder`` in onnxruntime/core/providers/get_execution_providers.cc.
    """
    listed = runtime.load().get_available_providers()
    return tuple(listed[: listed.index(_CPU) + 1])


def modules() -> tuple[str, ...]:
    """Names of the installed modules that bring a plugin. Imports none of them."""
    # Of all folders that modules come from, pkgutil looks at each entry, which takes milliseconds, and this is asked often.
    folders = [folder for folder in sys.path if isinstance(folder, str) and _may_hold_one(folder)]
    found = {m.name for m in pkgutil.iter_modules(folders) if m.name.startswith(_PREFIX)}
    return tuple(sorted(name for name in found if name.startswith(_SURE_PREFIX) or _tells(name)))


def modules_for(provider: str) -> tuple[str, ...]:
    """The same, those first whose source has the provider's name: importing the others may be dear."""
    return tuple(sorted(modules(), key=lambda name: provider not in _source(name)))


def release_of(module: str) -> str:
    """The distribution that a module comes from and its version; empty where there is none. Imports nothing."""
    for name in (module, *_distributions().get(module, ())) if module.isidentifier() else ():
        try:
            return f"{metadata.metadata(name)['Name']} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""


@functools.cache
def of_module(name: str) -> Plugin:
    """The plugin that a module brings.

    Raises
    ------
    PluginError
    """
    try:
        module = importlib.import_module(name)
        tells = next((getattr(module, n) for n in _LIBRARY_NAMES if callable(getattr(module, n, None))), None)
        if tells is None:
            raise PluginError(f"has no {_LIBRARY_NAMES[0]}(), so it is not a package of a plugin")
        library = os.fspath(tells())
        told = next((getattr(module, n) for n in _EP_NAMES if hasattr(module, n)), ())
        names = told() if callable(told) else told
    except PluginError:
        raise
    except Exception as error:  # whatever another package's code raises, the others go on
        raise PluginError(f"cannot be imported: {type(error).__name__}: {error}") from error
    providers = (names,) if isinstance(names, str) else tuple(map(str, names))
    return Plugin(name, _existing(library, f"names the library {library}, and "), providers)


def of_path(path: str) -> Plugin:
    """The plugin that a file is.

    Raises
    ------
    PluginError
    """
    return Plugin(path, _existing(os.path.abspath(path), ""))


def is_path(plugin: str) -> bool:
    """Whether a plugin is named by its file rather than by its module."""
    return Path(plugin).is_file() or not all(part.isidentifier() for part in plugin.split("."))


def register(plugin: Plugin, provider: str) -> None:
    """Have ONNX Runtime load a plugin's library, once a process.

    Parameters
    ----------
    provider : str
        One of its providers. The library is registered by this name, and there are libraries that call their provider so.

    Raises
    ------
    PluginError
    """
    if (reason := _register(plugin.library, provider)) is not None:
        raise PluginError(reason)


def named(plugin: str, provider: str) -> Plugin:
    """The plugin with a provider that the user names by its module or file, registered.

    Raises
    ------
    PluginError
    """
    found = of_path(plugin) if is_path(plugin) else of_module(plugin)
    offered: Collection[str] = found.providers
    if not offered or provider in offered:
        register(found, provider)
        offered = providers_of(found.library) or offered
    if offered and provider not in offered:
        raise PluginError(f"has no {provider}; it has {', '.join(offered)}")
    return found


def find(provider: str) -> tuple[Plugin | None, str]:
    """The installed plugin that has a provider, and why none has where a module that may cannot be read."""
    wanted, reasons = provider_without_meta(provider), []
    for name in modules_for(wanted):
        try:
            plugin = of_module(name)
        except PluginError as error:
            reasons.append(f"{name} {error}")
        else:
            if wanted in plugin.providers:
                return plugin, ""
    return None, "; ".join(reasons)


def installed(provider: str) -> tuple[Plugin | None, str]:
    """The same, registered."""
    plugin, reason = find(provider)
    if plugin is None:
        return None, reason
    try:
        register(plugin, provider_without_meta(provider))
    except PluginError as error:
        return None, f"{plugin.name} {error}"
    return plugin, ""


def devices(provider: str, library: str = "") -> list[Any]:
    """The OrtEpDevices of a plugin's provider, of any registered library or of one."""
    found = [d for d in runtime.load().get_ep_devices() if d.ep_name == provider]
    return [d for d in found if not library or d.ep_metadata.get("library_path", library) == library]


def providers_of(library: str) -> dict[str, list[Any]]:
    """The OrtEpDevices of a registered library by the names of their providers.

    Only ONNX Runtime's newer releases tell the library of a device; with the others there is nothing.
    """
    found: dict[str, list[Any]] = {}
    for device in runtime.load().get_ep_devices():
        if device.ep_metadata.get("library_path") == library:
            found.setdefault(device.ep_name, []).append(device)
    return found


def chosen(devices: Sequence[Any], device: Device) -> list[Any]:
    """Those OrtEpDevices that a device string stands for, in its order; the first where it names none."""
    names = device.text.partition(":")[2] if device.kind == "AUTO" else device.text
    if not names:
        return list(devices) if device.kind == "AUTO" else list(devices[:1])
    picked = []
    for name in names.split(","):
        of_kind = [d for d in devices if d.device.type.name == Device(name).kind]
        picked += of_kind[Device(name).index : Device(name).index + 1]
    return picked


def provider_without_meta(provider: str) -> str:
    """``OpenVINOExecutionProvider`` of ``OpenVINOExecutionProvider.AUTO``: the same provider, choosing devices itself."""
    return provider.partition(".")[0]


def _may_hold_one(folder: str) -> bool:
    try:
        return any(name.startswith(_PREFIX) for name in os.listdir(folder or "."))
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False


def _tells(module: str) -> bool:
    """Whether a module's source has a function that returns where the library is."""
    source = _source(module)
    return any(f"def {name}(" in source for name in _LIBRARY_NAMES)


def _source(module: str) -> str:
    """A module's source text; empty where it has none."""
    try:
        spec = importlib.util.find_spec(module)
        return Path(spec.origin).read_text(encoding="utf-8") if spec is not None and spec.origin is not None else ""
    except (OSError, ValueError):
        return ""


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _existing(library: str, prefix: str) -> str:
    if not os.path.isfile(library):
        raise PluginError(f"{prefix}there is no such file" if prefix else "is not a file")
    return library


@functools.cache
def _register(library: str, name: str) -> str | None:
    """Register a library; the reason when that cannot be done."""
    ort = runtime.load()
    if any(d.ep_metadata.get("library_path") == library for d in ort.get_ep_devices()):
        return None  # the user did
    try:
        try:
            ort.register_execution_provider_library(name, library)
        except errors.all_errors() as error:
            if "already registered" not in str(error):
                raise
            if not any("library_path" not in d.ep_metadata for d in devices(name)):
                ort.register_execution_provider_library(library, library)  # the name is another library's
    except errors.all_errors() as error:
        return f"cannot be loaded by {runtime.describe()}: {errors.first_line(error)}"
    return None
