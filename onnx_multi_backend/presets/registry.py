# SPDX-License-Identifier: Apache-2.0
"""Presets by name: ours, and those that other packages add."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING

from onnx_multi_backend.errors import OptionError, OptionTypeError, PresetWarning
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.user_warnings import warn

if TYPE_CHECKING:
    from onnx_multi_backend.presets.answers import Availability

ENTRY_POINT_GROUP = "onnx_multi_backend.presets"

#: Name to module and class.
BUILT_IN = {
    "Ort": ("onnx_multi_backend.presets.ort", "OrtBackend"),
    "OrtCpu": ("onnx_multi_backend.presets.ort_cpu", "OrtCpuBackend"),
    "OrtCuda": ("onnx_multi_backend.presets.ort_cuda", "OrtCudaBackend"),
    "OrtTensorrt": ("onnx_multi_backend.presets.ort_tensorrt", "OrtTensorrtBackend"),
    "OrtTensorrtFloat": ("onnx_multi_backend.presets.ort_tensorrt", "OrtTensorrtFloatBackend"),
    "OrtTensorrtFloatOptim": ("onnx_multi_backend.presets.ort_tensorrt", "OrtTensorrtFloatOptimBackend"),
    "OrtTensorrtInt8": ("onnx_multi_backend.presets.ort_tensorrt", "OrtTensorrtInt8Backend"),
    "OrtTensorrtInt8QDQ": ("onnx_multi_backend.presets.ort_tensorrt", "OrtTensorrtInt8QDQBackend"),
    "OrtOpenvino": ("onnx_multi_backend.presets.ort_openvino", "OrtOpenvinoBackend"),
    "OrtOpenvinoFloat": ("onnx_multi_backend.presets.ort_openvino", "OrtOpenvinoFloatBackend"),
    "OrtOpenvinoInt8": ("onnx_multi_backend.presets.ort_openvino", "OrtOpenvinoInt8Backend"),
    "Openvino": ("onnx_multi_backend.presets.openvino", "OpenvinoBackend"),
}

#: Presets that are another one with options of its own: what is known of that one's results holds for them, and a search tries nothing new
#: on them.
PART_OF = {"Ort": "OrtCpu", "OrtOpenvinoFloat": "OrtOpenvino", "OrtOpenvinoInt8": "OrtOpenvino"}


def presets() -> dict[str, type[Preset]]:
    """Every preset by name. Imports no engine.

    Other packages add presets through the entry-point group ``onnx_multi_backend.presets``; one that cannot be loaded
    is left out with a `PresetWarning`.
    """
    found = {name: _built_in(name) for name in BUILT_IN}
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        if entry.name in found:
            _warn(entry.name, f"the name is taken by {found[entry.name].__module__}")
            continue
        try:
            preset = entry.load()
        except Exception as error:  # whatever another package's import raises, the other presets go on
            _warn(entry.name, f"{entry.value} cannot be loaded: {type(error).__name__}: {error}")
            continue
        if not (isinstance(preset, type) and issubclass(preset, Preset)):
            _warn(entry.name, f"{entry.value} is not a subclass of onnx_multi_backend.Preset")
            continue
        if preset.name != entry.name:
            _warn(entry.name, f"{entry.value} calls itself {preset.name!r}")
            continue
        found[entry.name] = preset
    return found


def get_preset(name: str) -> type[Preset]:
    """The preset of a name.

    Raises
    ------
    OptionError
        Names the known ones.
    """
    if not isinstance(name, str):
        raise OptionTypeError(f"A preset is given by its name; {name!r} was given.")
    if name in BUILT_IN:
        return _built_in(name)
    from onnx_multi_backend.presets.meant import in_place_of_preset, named_preset

    known = presets()
    if name not in known:
        same = named_preset(name, known)
        if same is not None:
            return known[same]
        raise OptionError(f"There is no preset {name!r}.{in_place_of_preset(name, known)} Presets: {', '.join(known)}.")
    return known[name]


def preset_class(module: str, name: str) -> type[Preset]:
    """The class of one of our presets, for a module's ``__getattr__``.

    Raises
    ------
    AttributeError
        None has that name.
    """
    for known, (_, cls) in BUILT_IN.items():
        if cls == name:
            return _built_in(known)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def availability() -> dict[str, Availability]:
    """Whether each preset can be used here, on which devices, and if not why."""
    return {name: _availability(name, preset) for name, preset in presets().items()}


def _availability(name: str, preset: type[Preset]) -> Availability:
    from onnx_multi_backend.presets.answers import Availability

    if name in BUILT_IN:
        return preset.availability()
    try:
        return preset.availability()
    except Exception as error:  # another package's preset is broken: it is not usable, the others are not harmed
        reason = f"the check whether it is usable fails: {type(error).__name__}: {error}"
        return Availability(False, (), "", reason, f"Ask the makers of {preset.__module__}")


def _built_in(name: str) -> type[Preset]:
    module, cls = BUILT_IN[name]
    preset: type[Preset] = getattr(importlib.import_module(module), cls)
    return preset


def _warn(name: str, why: str) -> None:
    warn(f"preset {name!r} is left out: {why}", PresetWarning)
