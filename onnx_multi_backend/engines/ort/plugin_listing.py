# SPDX-License-Identifier: Apache-2.0
"""What the installed plugins offer on this host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_multi_backend.engines.ort import plugins, providers, runtime
from onnx_multi_backend.engines.ort.plugins import PluginError
from onnx_multi_backend.host.devices import Device


@dataclass(frozen=True)
class PluginProvider:
    """One execution provider of an installed plugin.

    Attributes
    ----------
    module : str
        The module that brings it.
    release : str
        Its distribution and version.
    name : str
        The provider; empty where the module does not tell.
    version : str
        As the provider itself tells it; empty where it offers no device.
    devices : tuple of str
    reason : str
        Why it offers no device; empty where it does.
    """

    module: str
    release: str
    name: str = ""
    version: str = ""
    devices: tuple[str, ...] = ()
    reason: str = ""


def installed() -> list[PluginProvider]:
    """Every execution provider of every installed plugin. A plugin that is broken says why, and harms no other."""
    if runtime.why_missing() is not None:
        return []
    found = []
    for module in plugins.modules():
        release = plugins.release_of(module)
        try:
            names = plugins.of_module(module).providers
        except PluginError as error:
            found.append(PluginProvider(module, release, reason=f"{module} {error}"))
        else:
            found += [_provider(module, release, name) for name in names]
    return found


def _provider(module: str, release: str, name: str) -> PluginProvider:
    if plugins.built_in(name):
        return PluginProvider(
            module, release, name, reason=f"{runtime.describe()} has a {name} of its own, which goes first"
        )
    with providers.quiet():
        offered: list[Any] = providers.plugin_devices(name)
    if not offered:
        problem = providers.why_unusable(name, Device(""))
        return PluginProvider(module, release, name, reason="" if problem is None else problem.reason)
    devices = tuple(dict.fromkeys(d.device.type.name for d in offered))
    return PluginProvider(module, release, name, offered[0].ep_metadata.get("version", ""), devices)
