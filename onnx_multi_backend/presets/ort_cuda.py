# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on NVIDIA GPUs through CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.presets.contradiction import settled_device
from onnx_multi_backend.presets.knobs import Host, Knob, provider_knob
from onnx_multi_backend.presets.options import Option, provider_options
from onnx_multi_backend.presets.ort import OrtPreset

#: Every option of the CUDA execution provider. ONNX Runtime answers right and wrong names alike where there is no GPU,
#: so the names are held to this list. Source: ``provider_option_names`` in
#: https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/cuda/cuda_execution_provider_info.cc
CUDA_PROVIDER_OPTIONS = frozenset(
    {
        "arena_extend_strategy",
        "cudnn_conv1d_pad_to_nc1d",
        "cudnn_conv_algo_search",
        "cudnn_conv_use_max_workspace",
        "device_id",
        "do_copy_in_default_stream",
        "enable_cuda_graph",
        "enable_cudnn",
        "enable_skip_layer_norm_strict_mode",
        "fuse_conv_bias",
        "gpu_external_alloc",
        "gpu_external_empty_cache",
        "gpu_external_free",
        "gpu_mem_limit",
        "has_user_compute_stream",
        "prefer_nhwc",
        "sdpa_kernel",
        "tunable_op_enable",
        "tunable_op_max_tuning_duration_ms",
        "tunable_op_tuning_enable",
        "use_ep_level_unified_stream",
        "use_tf32",
        "user_compute_stream",
    }
)


class OrtCudaBackend(OrtPreset):
    """ONNX Runtime's CUDA execution provider, computing float32 in float32.

    ONNX Runtime's own default is TF32, with 10 bits of mantissa; ``provider_options={"use_tf32": 1}`` asks for it.
    """

    name = "OrtCuda"
    family = devices.CUDA
    provider = providers.CUDA
    options = (Option("provider_options", provider_options, doc="options of the CUDA execution provider"),)

    @classmethod
    def _check_settings(cls, settings: Mapping[str, Any]) -> None:
        super()._check_settings(settings)
        unknown = sorted(set(settings["provider_options"]) - CUDA_PROVIDER_OPTIONS)
        if unknown:
            raise OptionError(
                f"{cls.provider} has no option {', '.join(map(repr, unknown))}. "
                f"Its options are {', '.join(sorted(CUDA_PROVIDER_OPTIONS))}."
            )

    @classmethod
    def _parse_device(cls, device: str | None, settings: Mapping[str, Any]) -> Device:
        parsed = super()._parse_device(device, settings)
        given = settings.get("provider_options", {})
        return settled_device(cls.name, device, parsed, "device_id", given, by_index=True)

    @classmethod
    def _provider_options(
        cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None
    ) -> dict[str, str]:
        return {"device_id": str(device.index), "use_tf32": "0", **settings["provider_options"]}

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        return (
            provider_knob(
                "convolution algorithms",
                ("cuDNN's heuristic", {"cudnn_conv_algo_search": "HEURISTIC"}, True),
                ("cuDNN's default", {"cudnn_conv_algo_search": "DEFAULT"}, True),
            ),
            provider_knob("layout", ("NHWC", {"prefer_nhwc": "1"}, True)),
            provider_knob("fused bias", ("fused convolution bias", {"fuse_conv_bias": "1"}, True)),
            provider_knob("precision", ("TF32", {"use_tf32": "1"}, False)),
        )
