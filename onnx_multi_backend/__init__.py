# SPDX-License-Identifier: Apache-2.0
"""Every way to run an ONNX model on ONNX Runtime or OpenVINO, behind `onnx.backend.base`."""

import importlib
from typing import TYPE_CHECKING, Any

import onnx_multi_backend.presets  # noqa: F401  # imported later, the package would take the place of the function `presets`
from onnx_multi_backend import early_interrupt  # noqa: F401  (before all else)
from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.backend import prepare
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.errors import (
    AlreadyQuantizedError,
    CacheWarning,
    CalibrationDataError,
    CalibrationTableError,
    DeviceError,
    DeviceUnavailableError,
    EngineCrashedError,
    EngineNotInstalledError,
    EnvironmentWarning,
    FallbackWarning,
    InputError,
    InvalidModelError,
    OnnxMultiBackendError,
    OpenShapesError,
    OptionError,
    OptionTypeError,
    PrecisionWarning,
    PresetWarning,
    RunError,
    UnsupportedModelError,
)
from onnx_multi_backend.host.versions import __version__ as __version__
from onnx_multi_backend.models.tensors import TensorInfo
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.registry import availability, preset_class, presets
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.running.prepared import PreparedModel

if TYPE_CHECKING:
    from onnx_multi_backend.backend import (
        OpenvinoBackend,
        OrtBackend,
        OrtCpuBackend,
        OrtCudaBackend,
        OrtOpenvinoBackend,
        OrtOpenvinoFloatBackend,
        OrtOpenvinoInt8Backend,
        OrtTensorrtBackend,
        OrtTensorrtFloatBackend,
        OrtTensorrtFloatOptimBackend,
        OrtTensorrtInt8Backend,
        OrtTensorrtInt8QDQBackend,
    )
    from onnx_multi_backend.examples import get_example
    from onnx_multi_backend.inference_session import InferenceSession
    from onnx_multi_backend.presets.answers import Availability, Compatibility
    from onnx_multi_backend.tuning import bench, tune


def __getattr__(name: str) -> Any:
    """A preset's class, or what a first run does not need, imported when it is first asked for."""
    if name in _LATER:
        return getattr(importlib.import_module(f"onnx_multi_backend.{_LATER[name]}"), name)
    return preset_class(__name__, name)


_LATER = {
    "Availability": "presets.answers",
    "Compatibility": "presets.answers",
    "InferenceSession": "inference_session",
    "bench": "tuning",
    "get_example": "examples",
    "tune": "tuning",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Adaptation",
    "AlreadyQuantizedError",
    "Availability",
    "CacheWarning",
    "CalibrationDataError",
    "CalibrationTableError",
    "Compatibility",
    "DeviceError",
    "DeviceUnavailableError",
    "EngineCrashedError",
    "EngineNotInstalledError",
    "EnvironmentWarning",
    "FallbackWarning",
    "InferenceSession",
    "InputError",
    "InvalidModelError",
    "NodePlacement",
    "OnnxMultiBackendError",
    "OpenShapesError",
    "OpenvinoBackend",
    "OptionError",
    "OptionTypeError",
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
    "PrecisionWarning",
    "PreparedModel",
    "Preset",
    "PresetWarning",
    "RunError",
    "Setup",
    "TensorInfo",
    "UnsupportedModelError",
    "availability",
    "bench",
    "get_example",
    "prepare",
    "presets",
    "tune",
]
