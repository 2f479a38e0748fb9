# SPDX-License-Identifier: Apache-2.0
"""CUDA's option names: ONNX Runtime tells right from wrong ones only where there is a GPU, so they are held to a list."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.ort_cuda import CUDA_PROVIDER_OPTIONS


def _options(device: str | None = None, **options: object) -> dict[str, str]:
    parsed, settings = omb.OrtCudaBackend._settle(device, options)
    ((_, chosen),) = omb.OrtCudaBackend.make_target(settings, parsed, load(models.relu())).providers
    return dict(chosen)


def test_what_the_preset_sets_is_on_the_list() -> None:
    assert set(_options()) <= CUDA_PROVIDER_OPTIONS
    assert _options("CUDA:2") == {"device_id": "2", "use_tf32": "0"}


def test_the_users_options_win() -> None:
    assert _options(provider_options={"use_tf32": 1, "gpu_mem_limit": 1 << 30}) == {
        "device_id": "0",
        "use_tf32": "1",
        "gpu_mem_limit": "1073741824",
    }


def test_each_name_on_the_list_is_in_the_providers_library(gpu_wheel: Path) -> None:
    library = (gpu_wheel / "capi" / "libonnxruntime_providers_cuda.so").read_bytes()
    # Short names can be built into instructions instead of being stored as text.
    missing = [name for name in CUDA_PROVIDER_OPTIONS if len(name) > 15 and name.encode() not in library]
    assert missing == []
    assert b"gpu_memory_limit_of_nothing" not in library


@pytest.mark.parametrize("name", ["gpu_memory_limit", "trt_fp16_enable", "USE_TF32", ""])
def test_a_name_that_is_not_on_the_list_is_refused(name: str) -> None:
    with pytest.raises(omb.OptionError, match="CUDAExecutionProvider has no option"):
        _options(provider_options={name: 1})
