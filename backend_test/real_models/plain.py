# SPDX-License-Identifier: Apache-2.0
"""The engines as one uses them without this package, and ours, in one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnx_multi_backend.presets.registry import get_preset

Run = Callable[[Mapping[str, Any]], list[Any]]


def ort(path: Path, provider: str = "CPUExecutionProvider", optimized: bool = True) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers: list[Any] = [provider]
    if "OpenVINO" in provider:
        providers = [(provider, {"device_type": "CPU", "precision": "FP32"}), "CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(path, options, providers=providers)
    return lambda feeds: list(session.run(None, feeds))


def openvino(path: Path) -> Run:
    import openvino as ov

    core = ov.Core()
    properties = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(core.read_model(path), "CPU", properties)
    return lambda feeds: list(compiled(feeds).values())


def ours(preset: str, path: Path) -> Run:
    prepared = get_preset(preset).prepare(path, cache_dir=False)
    return lambda feeds: list(prepared.run(feeds))


#: The engine under each preset.
PLAIN: dict[str, Callable[[Path], Run]] = {
    "OrtCpu": ort,
    "Openvino": openvino,
    "OrtOpenvino": lambda path: ort(path, "OpenVINOExecutionProvider"),
}
