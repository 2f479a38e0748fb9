# SPDX-License-Identifier: Apache-2.0
"""What a name may have meant that is no preset's: an execution provider's, a device's, or one that is like a preset's."""

from __future__ import annotations

from collections.abc import Iterable

from onnx_multi_backend import option_words
from onnx_multi_backend.host import devices

#: The preset of each of ONNX Runtime's execution providers that has one.
OF_PROVIDER = {
    "CPUExecutionProvider": "OrtCpu",
    "CUDAExecutionProvider": "OrtCuda",
    "TensorrtExecutionProvider": "OrtTensorrt",
    "OpenVINOExecutionProvider": "OrtOpenvino",
}

_PROVIDER = "executionprovider"
_CLASS = "Backend"


def named_preset(name: str, known: Iterable[str]) -> str | None:
    """The preset whose name this is, in any case, or whose class has this name; None where there is not one alone."""
    lower = name.removesuffix(_CLASS).lower()
    same = [preset for preset in known if preset.lower() == lower]
    return same[0] if len(same) == 1 else None


def in_place_of_preset(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is no preset's; empty where it is like nothing."""
    if words := _of_provider(name):
        return words
    if devices.CPU.knows(name) or devices.CUDA.knows(name):
        return f" It is a device: pass {option_words.given('device', name)}."
    if devices.OPENVINO.knows(name):
        own = option_words.given("preset", "Openvino"), option_words.given("device", name)
        return f" It is a device of OpenVINO: pass {' and '.join(own)}."
    return devices.similar(name, known)


def in_place_of_device(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is no device's; empty where it is neither a provider's nor a preset's."""
    if words := _of_provider(name):
        return words
    preset = named_preset(name, known)
    return f" It is a preset: pass {option_words.given('preset', preset)}." if preset is not None else ""


def _of_provider(name: str) -> str:
    if not name.lower().endswith(_PROVIDER):
        return ""
    preset = next((p for provider, p in OF_PROVIDER.items() if provider.lower() == name.lower()), None)
    if preset is not None:
        return f" The preset of this execution provider is {preset}: pass {option_words.given('preset', preset)}."
    return (
        f" For an execution provider without a preset of its own pass {option_words.given('preset', 'Ort')} and "
        f"{option_words.given('provider_name', name)}."
    )
