# SPDX-License-Identifier: Apache-2.0
"""Adding an execution provider to a session's options, be it built in or a plugin's."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.ort import errors, plugins, providers
from onnx_multi_backend.engines.ort.records import record
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.host.devices import Device


def attach(options: Any, name: str, chosen: dict[str, str], *, device: Device, library: str, who: str) -> None:
    """Add a provider with its options.

    Parameters
    ----------
    options : onnxruntime.SessionOptions
    name : str
    chosen : dict of str to str
    device : Device
        Picks among a plugin's devices.
    library : str
        The plugin's library that is meant; empty for the one that is found.
    who : str
        For messages.

    Raises
    ------
    OptionError
        The provider refuses an option, or would ignore it.
    """
    if not library and plugins.built_in(name):
        try:
            with providers.quiet():
                options.add_provider(name, chosen)
        except errors.all_errors() as error:
            raise OptionError(
                f"{who}: {name} refuses its options {chosen}: {errors.first_line(error)}. "
                "Correct the name or the value of the option."
            ) from error
        return
    known = record(name, plugin=True).known_options
    if known and (ignored := sorted(set(chosen) - known)):
        raise OptionError(
            f"{who}: {name} as a plugin has no option {', '.join(map(repr, ignored))}, and would ignore it. Its options "
            f"are {', '.join(sorted(known))}."
        )
    options.add_provider_for_devices(providers.plugin_devices_for(name, device, library), chosen)
