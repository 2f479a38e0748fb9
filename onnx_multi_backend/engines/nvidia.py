# SPDX-License-Identifier: Apache-2.0
"""What the NVIDIA driver and libraries on this host say, asked through ctypes; needs no engine."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from pathlib import Path

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_CUDA_ERROR_NO_DEVICE = 100


@functools.cache
def device_count() -> tuple[int, str | None]:
    """Number of CUDA devices, and the reason when there is none.

    Source: CUDA Driver API, ``cuInit`` and ``cuDeviceGetCount``.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError as error:
        return 0, f"no NVIDIA driver: {error}"
    status = driver.cuInit(0)
    if status == _CUDA_ERROR_NO_DEVICE:
        return 0, "the NVIDIA driver finds no GPU (CUDA_ERROR_NO_DEVICE)"
    if status != 0:
        return 0, f"the NVIDIA driver does not start: cuInit returned error {status}"
    count = ctypes.c_int(0)
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        return 0, f"the NVIDIA driver cannot count its devices: cuDeviceGetCount returned error {status}"
    if count.value == 0:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        return 0, "no CUDA device is visible" + (f" (CUDA_VISIBLE_DEVICES={hidden!r})" if hidden is not None else "")
    return count.value, None


def missing_library(provider_library: Path) -> str | None:
    """Why an execution provider's library cannot be loaded, naming the first library that is missing; None: it can.

    Parameters
    ----------
    provider_library : Path
        For example ``onnxruntime/capi/libonnxruntime_providers_cuda.so``.
    """
    if not provider_library.is_file():
        return f"{provider_library.name} is not part of the installed wheel"
    shared = provider_library.with_name(provider_library.name.replace("cuda", "shared").replace("tensorrt", "shared"))
    with contextlib.suppress(OSError):  # loading the provider reports what is wrong
        ctypes.CDLL(str(shared), mode=ctypes.RTLD_GLOBAL)
    try:
        ctypes.CDLL(str(provider_library))
    except OSError as error:
        return str(error).split(": cannot open shared object file")[0] + " is missing or cannot be loaded"
    return None
