# SPDX-License-Identifier: Apache-2.0
"""A backend in ONNX's module form, which picks the preset by device; and every preset's class.

``prepare(model, device="CUDA:0").run(inputs)``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnx import NodeProto

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import DeviceError, DeviceUnavailableError, OptionError, OptionTypeError
from onnx_multi_backend.host.devices import OPENVINO, similar
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.registry import get_preset, preset_class, presets
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.running.prepared import PreparedModel

if TYPE_CHECKING:
    from onnx_multi_backend.presets.answers import Availability
    from onnx_multi_backend.presets.openvino import OpenvinoBackend
    from onnx_multi_backend.presets.ort import OrtBackend
    from onnx_multi_backend.presets.ort_cpu import OrtCpuBackend
    from onnx_multi_backend.presets.ort_cuda import OrtCudaBackend
    from onnx_multi_backend.presets.ort_openvino import (
        OrtOpenvinoBackend,
        OrtOpenvinoFloatBackend,
        OrtOpenvinoInt8Backend,
    )
    from onnx_multi_backend.presets.ort_tensorrt import (
        OrtTensorrtBackend,
        OrtTensorrtFloatBackend,
        OrtTensorrtFloatOptimBackend,
        OrtTensorrtInt8Backend,
        OrtTensorrtInt8QDQBackend,
    )

__all__ = [
    "OpenvinoBackend",
    "OrtBackend",
    "OrtCpuBackend",
    "OrtCudaBackend",
    "OrtOpenvinoBackend",
    "OrtOpenvinoFloatBackend",
    "OrtOpenvinoInt8Backend",
    "OrtTensorrtBackend",
    "OrtTensorrtFloatBackend",
    "OrtTensorrtFloatOptimBackend",
    "OrtTensorrtInt8Backend",
    "OrtTensorrtInt8QDQBackend",
    "is_compatible",
    "prepare",
    "run",
    "run_model",
    "run_node",
    "supports_device",
]

_NAME = option_words.Placeholder("NAME")

#: The part of a device string before the first colon: the preset, and what the preset calls the device.
_ROUTES = {
    "CPU": ("OrtCpu", "CPU"),
    "CUDA": ("OrtCuda", "CUDA"),
    "TENSORRT": ("OrtTensorrtFloat", "CUDA"),
    "OPENVINO": ("Openvino", ""),
    "ORT_OPENVINO": ("OrtOpenvino", ""),
}


def __getattr__(name: str) -> type[Preset]:
    """A preset's class, imported when it is first asked for: a run on one preset needs no other."""
    return preset_class(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Default(str):
    """The default of ``device``: tells a device that was not given from a "CPU" that was."""

    __slots__ = ()


_CPU = _Default("CPU")


def _route(device: object, preset: str | None) -> tuple[type[Preset], str | None]:
    if preset is not None:
        chosen = get_preset(preset)
        if device is None or device is _CPU:
            return chosen, None
        if isinstance(device, str) and chosen.family.knows(device):
            return chosen, device
        routed, own = _route(device, None)  # "OPENVINO:GPU" with preset="Openvino"
        if routed.family is not chosen.family:
            raise DeviceError(
                f"{chosen.name} has no device {device!r}. Its devices are written {chosen.family.examples}."
            )
        return chosen, own
    if device is None:
        device = _CPU
    head, colon, rest = device.partition(":") if isinstance(device, str) else ("", "", "")
    head = head.upper()
    if head == "GPU":  # NVIDIA's, unless OpenVINO alone finds one
        cuda, openvino = get_preset("OrtCuda").availability(), get_preset("Openvino")
        if not cuda.usable and openvino.supports_device("GPU"):
            return openvino, f"GPU.{rest}" if rest else "GPU"
        if not cuda.usable:
            raise DeviceUnavailableError(_no_gpu(cuda, openvino.availability()))
        head = "CUDA"
    if head not in _ROUTES or (colon and not rest):
        raise DeviceError(
            f"There is no device {device!r}.{_meant(device, head)} Devices: CPU, CUDA[:N], GPU[:N], TENSORRT[:N], "
            f"OPENVINO[:dev], ORT_OPENVINO[:dev]; for another preset pass {option_words.given('preset', _NAME)}, for another execution provider "
            f"{option_words.given('preset', 'Ort')} and {option_words.given('provider_name', _NAME)}."
        )
    name, prefix = _ROUTES[head]
    chosen = get_preset(name)
    if not prefix:
        return chosen, rest or None
    return chosen, f"{prefix}:{rest}" if rest else prefix


def _meant(device: object, head: str) -> str:
    """What a device string may have meant: OpenVINO's own ("AUTO", "NPU", "GPU.1"), a provider, a preset, or a name that is like it."""
    if isinstance(device, str) and OPENVINO.knows(device):
        return f" Did you mean {f'OPENVINO:{device.upper()}'!r}?"
    from onnx_multi_backend.presets.meant import in_place_of_device

    named = in_place_of_device(device, presets()) if isinstance(device, str) else ""
    return named or similar(head, [*_ROUTES, "GPU"])


def _no_gpu(cuda: Availability, openvino: Availability) -> str:
    seen = f"it finds {', '.join(openvino.devices)}" if openvino.usable else openvino.reason
    return (
        f"No GPU can be used here. NVIDIA's, by CUDA: {cuda.reason}. {cuda.cure}. Intel's, by OpenVINO: {seen}. "
        f"Without a GPU use {option_words.given('device', 'CPU')}, or {option_words.literal('OPENVINO')} for OpenVINO on the CPU."
    )


def prepare(
    model: ModelLike,
    device: str | None = _CPU,
    preset: str | None = None,
    *,
    setup: Setup | None = None,
    **options: Any,
) -> PreparedModel:
    """Prepare a model on the preset that a device, or a name, stands for.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    device : str
        ``CPU``, ``CUDA[:N]``, ``TENSORRT[:N]``, ``OPENVINO[:dev]``, ``ORT_OPENVINO[:dev]``, or ``GPU[:N]``: CUDA, or
        OpenVINO's GPU where CUDA is not usable. With `preset`, a device of that preset or None for its default.
    preset : str, optional
        A preset's name.
    setup : Setup, optional
        Preset, device and options in one record, instead of these.
    **options
        Of the preset.

    Raises
    ------
    OnnxMultiBackendError
        As `Preset.prepare`; or a setup is given beside a device or a preset.
    """
    if setup is not None:
        if not isinstance(setup, Setup):
            raise OptionTypeError(
                f"setup is a Setup; {setup!r} was given. Setup.from_json makes one of an object, as json.loads reads it from a saved file."
            )
        if device is not _CPU or preset is not None:
            raise OptionError("A setup names its preset and device itself. Leave device and preset out.")
        return setup.prepare(model, **options)
    chosen, own = _route(device, preset)
    return chosen.prepare(model, own, **options)


def run_model(
    model: ModelLike, inputs: Any, device: str | None = _CPU, preset: str | None = None, **options: Any
) -> tuple[Any, ...]:
    """Prepare a model and run it once."""
    return prepare(model, device, preset, **options).run(inputs)


#: ONNX Runtime's backend module has `run_model` under this name too.
run = run_model


def run_node(
    node: NodeProto,
    inputs: Any,
    device: str | None = _CPU,
    outputs_info: Sequence[tuple[Any, Sequence[int]]] | None = None,
    preset: str | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Run one operator; see `Preset.run_node`."""
    chosen, own = _route(device, preset)
    return chosen.run_node(node, inputs, own, outputs_info, **options)


def is_compatible(model: ModelLike, device: str | None = _CPU, preset: str | None = None, **options: Any) -> bool:
    """Whether the preset can run the model. Never raises on a broken model or an unknown device."""
    try:
        chosen, own = _route(device, preset)
    except (DeviceError, DeviceUnavailableError):
        return False
    return chosen.is_compatible(model, own, **options)


def supports_device(device: str) -> bool:
    """Whether a device can be used here and now. Never raises."""
    try:
        chosen, own = _route(device, None)
    except (DeviceError, DeviceUnavailableError):
        return False
    return chosen.supports_device(own or chosen.family.default)
