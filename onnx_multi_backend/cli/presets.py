# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend presets``: what is usable here, and what to do about the rest."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence

from onnx_multi_backend.cli import console, instructions, threads
from onnx_multi_backend.cli.arguments import Json
from onnx_multi_backend.engines.ort import plugin_listing, runtime
from onnx_multi_backend.engines.ort.plugin_listing import PluginProvider
from onnx_multi_backend.errors import EnvironmentWarning
from onnx_multi_backend.presets.answers import Availability
from onnx_multi_backend.presets.registry import availability

EXAMPLES = """\b
Examples:
  onnx-multi-backend presets
  onnx-multi-backend presets --json | jq '.presets.OrtCuda.reason'
"""


def presets(*, json: Json = False) -> None:
    """List presets and plugins: which are usable here, and why not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EnvironmentWarning)  # it is part of the answer
        found = availability()
        plugins = plugin_listing.installed()
    conflict = runtime.conflict()
    if json:
        states = {name: dataclasses.asdict(state) for name, state in found.items()}
        listed = [dataclasses.asdict(plugin) for plugin in plugins]
        on_cpu = instructions.to_json()
        told = {"openvino_cpu": on_cpu, "threads": threads.to_json()}
        console.as_json({"conflict": conflict, "presets": states, "plugins": listed, **told})
        return
    rows = [
        [name, "yes" if s.usable else "no", ", ".join(s.devices) or "-", s.engine or "not installed"]
        for name, s in found.items()
    ]
    console.table(["Preset", "Usable", "Devices", "Engine"], rows)
    list_unusable(found)
    list_plugins(plugins)
    threads.show()
    instructions.show()
    if conflict is not None:
        console.line()
        console.heading("Conflict")
        console.line(conflict, indent=2)


def list_plugins(plugins: Sequence[PluginProvider]) -> None:
    """Print the execution providers of installed plugins with their devices, or why they offer none."""
    if not plugins:
        return
    console.line()
    console.table(
        ["Plugin execution provider", "Version", "Devices", "Package"],
        [[p.name or "-", p.version or "-", ", ".join(p.devices) or "-", p.release or p.module] for p in plugins],
    )
    for plugin in plugins:
        if plugin.reason:
            console.line()
            console.heading(f"{plugin.name or plugin.module}: no device here")
            console.facts([("why", plugin.reason)])


def list_unusable(found: Mapping[str, Availability]) -> None:
    """Print why presets are not usable and the cure, once for those that share both."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, state in found.items():
        if not state.usable:
            groups.setdefault((state.reason, state.cure), []).append(name)
    for (reason, cure), names in groups.items():
        console.line()
        console.heading(f"{', '.join(names)}: not usable here")
        console.facts([(word, text) for word, text in (("why", reason), ("cure", cure)) if text])
