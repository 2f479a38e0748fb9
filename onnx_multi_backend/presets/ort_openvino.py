# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on OpenVINO, through the built-in execution provider or the plugin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnx_multi_backend import cache, devices
from onnx_multi_backend.devices import Device
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.errors import PresetWarning
from onnx_multi_backend.graph_walk import all_nodes
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.options import Option, anything, provider_options, threads
from onnx_multi_backend.presets.ort import OrtPreset, thread_options
from onnx_multi_backend.user_warnings import warn

_PROVIDER_OPTIONS = Option("provider_options", provider_options, doc="options of the OpenVINO execution provider")
_EXAMPLE = Option("input_example", anything, doc="one example of the inputs, in any of the three forms")
_ORT_THREADS = (
    Option("inter_op_num_threads", threads, doc="ONNX Runtime's threads that run nodes side by side"),
    Option("intra_op_num_threads", threads, doc="ONNX Runtime's threads inside one node"),
)

_OPENVINO_THREADS = Option("openvino_num_threads", threads, doc="OpenVINO's threads")


def _num_threads(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    chosen = settings.get("openvino_num_threads")
    return {} if chosen is None else {name: str(chosen)}


class OrtOpenvinoBackend(OrtPreset):
    """ONNX Runtime's OpenVINO execution provider with its own defaults and the options you pass."""

    name = "OrtOpenvino"
    family = devices.OPENVINO
    provider = providers.OPENVINO
    options = (_PROVIDER_OPTIONS, _EXAMPLE, *_ORT_THREADS)

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        if not providers.built_in(cls.provider):  # the plugin takes its device from an OrtEpDevice
            config = cls._plugin_config(settings)
            chosen = {"load_config": json.dumps({device.kind: config})} if config else {}
        else:
            chosen = {"device_type": device.text, **cls._built_in_options(settings, device)}
            folder = cache.resolve(settings["cache_dir"], slow_builds=False)
            if folder is not None and loaded is not None:
                parts = (sorted(chosen.items()), sorted(settings.get("provider_options", {}).items()))
                folder = cls._kept_by_engine(folder, "ort_openvino", loaded, *parts)
                if folder is not None:
                    chosen["cache_dir"] = str(folder)
        return {**chosen, **settings.get("provider_options", {})}

    @classmethod
    def _built_in_options(cls, settings: Mapping[str, Any], device: Device) -> dict[str, str]:
        """Options of the built-in execution provider."""
        return _num_threads("num_of_threads", settings)

    @classmethod
    def _plugin_config(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """OpenVINO's own properties, for the plugin."""
        return _num_threads("INFERENCE_NUM_THREADS", settings)

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return dict(thread_options(settings))


class OrtOpenvinoFloatBackend(OrtOpenvinoBackend):
    """ONNX Runtime's OpenVINO execution provider, computing float32 in float32 on every device.

    A model with Q/DQ nodes keeps what they ask for: OpenVINO computes int8 from them here too.
    """

    name = "OrtOpenvinoFloat"
    options = (_EXAMPLE, *_ORT_THREADS, _OPENVINO_THREADS)

    @classmethod
    def _built_in_options(cls, settings: Mapping[str, Any], device: Device) -> dict[str, str]:
        # FP32 is offered on these two alone; ACCURACY keeps the model's own types.
        precision = "FP32" if device.kind in ("CPU", "GPU") else "ACCURACY"
        return {"precision": precision, **super()._built_in_options(settings, device)}

    @classmethod
    def _plugin_config(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        return {"INFERENCE_PRECISION_HINT": "f32", **super()._plugin_config(settings)}


class OrtOpenvinoInt8Backend(OrtOpenvinoBackend):
    """ONNX Runtime's OpenVINO execution provider, int8 where the model's Q/DQ nodes say so.

    ONNX Runtime leaves the Q/DQ nodes as they are, double ones included, so that they reach OpenVINO, which computes
    int8 from them. (``session.disable_quant_qdq`` would not: it folds the weights' DequantizeLinear nodes into floats.)
    """

    name = "OrtOpenvinoInt8"
    options = (_EXAMPLE, *_ORT_THREADS, _OPENVINO_THREADS)

    @classmethod
    def _target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> Any:
        if loaded is not None and not any(n.op_type == "QuantizeLinear" for n in all_nodes(loaded.proto)):
            warn(
                f"{cls.name}: {loaded.label} has no QuantizeLinear nodes, so nothing of it runs in int8. Quantize it "
                "first (onnxruntime.quantization.quantize_static), or use OrtOpenvinoFloat.",
                PresetWarning,
            )
        return super()._target(settings, device, loaded)

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**thread_options(settings), "session.disable_double_qdq_remover": "1"}
