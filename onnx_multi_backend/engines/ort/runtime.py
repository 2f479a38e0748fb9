# SPDX-License-Identifier: Apache-2.0
"""The installed ONNX Runtime: which wheel it is, and the import of it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from onnx_multi_backend.errors import EngineNotInstalledError, EnvironmentWarning
from onnx_multi_backend.host.versions import fits
from onnx_multi_backend.user_warnings import warn

#: Since this version sessions record which node was assigned to which execution provider.
MIN_VERSION = "1.24"

#: All of these install the same import package, `onnxruntime`, and overwrite one another.
WHEELS = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-openvino",
    "onnxruntime-directml",
    "onnxruntime-training",
    "onnxruntime-qnn",
    "onnxruntime-rocm",
    "onnxruntime-migraphx",
    "onnxruntime-cann",
    "onnxruntime-silicon",
    "ort-nightly",
    "ort-nightly-gpu",
)

INSTALL_HINT = (
    'Install one of its wheels: pip install "onnxruntime-gpu[cuda,cudnn]" (CUDA and TensorRT, works without a GPU too), '
    "onnxruntime, or onnxruntime-openvino. An environment holds one of them: uninstall an older one first"
)


def install_instead(wheel: str) -> str:
    """How to install another wheel than the one that is there, as the beginning of a sentence."""
    others = [
        name for name in ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino") if name != wheel.partition("[")[0]
    ]
    return (
        f"Install {wheel.partition('[')[0]} in place of the other wheel, since an environment holds one: pip uninstall -y "
        f'{" ".join(others)}, then pip install "{wheel}"'
    )


@functools.cache
def installed_wheels() -> Mapping[str, str]:
    """Names and versions of the ONNX Runtime wheels in this environment. Imports nothing."""
    found = {}
    for name in WHEELS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def conflict() -> str | None:
    """A sentence when several wheels overwrite one another, else None. Imports nothing."""
    wheels = installed_wheels()
    if len(wheels) < 2:
        return None
    names = ", ".join(f"{name} {version}" for name, version in wheels.items())
    return (
        f"This environment holds {len(wheels)} ONNX Runtime wheels, which overwrite each other's files: {names}. "
        f"Uninstall all of them (pip uninstall -y {' '.join(wheels)}) and install exactly one again."
    )


@functools.cache
def why_missing() -> str | None:
    """A sentence when ONNX Runtime cannot be used, else None. Imports nothing."""
    if importlib.util.find_spec("onnxruntime") is None:
        return "ONNX Runtime is not installed"
    for name, version in installed_wheels().items():
        if not fits(version, f">={MIN_VERSION}"):
            return f"{name} {version} is older than {MIN_VERSION}, the first that reports where a node runs"
    return None


@functools.cache
def load() -> Any:
    """Import ONNX Runtime.

    Raises
    ------
    EngineNotInstalledError
        It is not installed, or too old.
    """
    if (reason := why_missing()) is not None:
        raise EngineNotInstalledError(f"{reason}. {INSTALL_HINT}.")
    if (sentence := conflict()) is not None:
        warn(sentence, EnvironmentWarning)
    return importlib.import_module("onnxruntime")


def describe() -> str:
    """The wheel and its version, for example ``onnxruntime-gpu 1.31.1``; empty when there is none. Imports nothing."""
    return ", ".join(f"{name} {version}" for name, version in installed_wheels().items())


def session_class() -> Any:
    """ONNX Runtime's own ``InferenceSession``, also where ``onnxruntime.InferenceSession`` was replaced by this package's."""
    load()
    return importlib.import_module("onnxruntime.capi.onnxruntime_inference_collection").InferenceSession
