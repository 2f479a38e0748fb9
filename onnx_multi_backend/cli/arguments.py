# SPDX-License-Identifier: Apache-2.0
"""The arguments that several commands share, and the presets that they choose."""

from __future__ import annotations

import enum
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from onnx import TensorProto, helper

from onnx_multi_backend.engines.placement import FALLBACKS
from onnx_multi_backend.errors import (
    CalibrationTableError,
    DeviceError,
    DeviceUnavailableError,
    EngineNotInstalledError,
    OnnxMultiBackendError,
    OptionError,
)
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.presets.registry import presets as all_presets
from onnx_multi_backend.presets.setup import NO_OPTIONS, Setup

#: Options without which a preset cannot be used, given where the user gives none.
SUPPLIED: Mapping[str, Mapping[str, Any]] = {"Ort": {"provider_name": "CPUExecutionProvider"}}

Fallback = enum.StrEnum("Fallback", {word: word for word in FALLBACKS})  # type: ignore[misc]

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An .onnx file.", show_default=False)]


def _complete_preset(incomplete: str) -> list[str]:
    return [name for name in all_presets() if name.startswith(incomplete)]


Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]FILE",
        help="An input from a .npy, .npz or .pb file; repeat it for several. A .npz without a name gives each of "
        "its arrays to the input of that name.",
        show_default=False,
    ),
]
PresetNames = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Only this preset; repeat it for several.",
        show_default=False,
        autocompletion=_complete_preset,
    ),
]
DeviceName = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="The device, as the preset calls it.", show_default=False),
]
FallbackPolicy = Annotated[
    Fallback | None,
    typer.Option(
        "--fallback",
        help="What nodes that the provider lacks may run on the CPU instead; partial unless given.",
        show_default=False,
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the preset, its value as JSON or a word; repeat it for several.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class Choice:
    """A preset with the device and the options to use it with.

    Attributes
    ----------
    preset : type of Preset
    setup : Setup
    why_not : str
        Why it cannot be used so; empty when it can.
    """

    preset: type[Preset]
    setup: Setup
    why_not: str = ""

    @property
    def label(self) -> str:
        """The preset's name, with what sets it apart: ``Ort (CPUExecutionProvider)``."""
        supplied = SUPPLIED.get(self.preset.name, {})
        words = [str(self.setup.options[name]) for name in supplied if name in self.setup.options]
        if "fallback" in self.setup.options:
            words.append(f"fallback={self.setup.options['fallback']}")
        return f"{self.preset.name} ({', '.join(words)})" if words else self.preset.name


def read_setup(file: Path) -> Setup:
    """Read a setup from a JSON file: the setup itself, or an object that holds it as ``setup``.

    Raises
    ------
    OptionError
        The file holds none.
    """
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise OptionError(f"--setup {file}: it is not JSON: {error}.") from error
    if isinstance(values, dict) and isinstance(values.get("setup"), dict):
        values = values["setup"]
    try:
        return Setup.from_json(values)
    except OptionError as error:
        raise OptionError(f"--setup {file}: {error}") from error


def parse_options(given: Sequence[str] | None, fallback: str | None) -> dict[str, Any]:
    """Read ``--option NAME=VALUE`` and ``--fallback``.

    Raises
    ------
    OptionError
    """
    options: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise OptionError(f"--option is written NAME=VALUE, for example intra_op_num_threads=2; {text!r} given.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    if taken := sorted(options.keys() & NO_OPTIONS):
        raise OptionError(
            f"--option {taken[0]}: that is no option of a preset; the command has an argument for it. See --help."
        )
    if fallback is not None:
        options["fallback"] = str(fallback)
    return options


def choose(names: Sequence[str] | None, device: str | None, options: Mapping[str, Any]) -> list[Choice]:
    """The presets that were named, or else all of them, those that cannot be used here with the reason.

    Raises
    ------
    OnnxMultiBackendError
        A named preset is unknown or cannot be used so; or none at all can be used.
    """
    if names:
        chosen = [_choice(get_preset(name), device, options) for name in dict.fromkeys(names)]
        for choice in chosen:
            error = _why_not(choice)
            if error is not None:
                raise error
        return chosen
    if set(options) - {"fallback"}:
        raise OptionError("--option goes with --preset: presets differ in their options.")
    found = []
    for preset in all_presets().values():
        choice = _choice(preset, device, options)
        error = _why_not(choice)
        found.append(choice if error is None else replace(choice, why_not=str(error)))
    if all(choice.why_not for choice in found):
        raise DeviceUnavailableError(_none_usable(found, device))
    return found


def _none_usable(found: Sequence[Choice], device: str | None) -> str:
    if device is None:
        return "No preset is usable here. `onnx-multi-backend presets` says why, and what to install."
    meant = [c.why_not for c in found if c.preset.family.knows(device) and c.preset.name not in SUPPLIED]
    return meant[0] if meant else f"No preset knows a device {device!r}. `onnx-multi-backend presets` lists devices."


def _choice(preset: type[Preset], device: str | None, options: Mapping[str, Any]) -> Choice:
    return Choice(preset, Setup(preset.name, device, {**SUPPLIED.get(preset.name, {}), **options}))


def _why_not(choice: Choice) -> OnnxMultiBackendError | None:
    """Try the preset on a model of one node: what is wrong then is the device, an option or the engine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model that is really run warns for itself
            choice.setup.prepare(_smallest_model())
    except CalibrationTableError:
        return None  # it belongs to the user's model
    except (DeviceError, DeviceUnavailableError, EngineNotInstalledError, OptionError) as error:
        return error
    except OnnxMultiBackendError:
        return None
    return None


def _smallest_model() -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "probe", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())
