# SPDX-License-Identifier: Apache-2.0
"""The engines as one uses them without this package, and ours, in one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from backend_test.search.engines import IN_FLOAT32
from onnx_multi_backend.engines.byte_sums import byte_products
from onnx_multi_backend.errors import OpenShapesError
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.presets.registry import get_preset

Run = Callable[[Mapping[str, Any]], list[Any]]

#: What adds up products of bytes without optimizations too.
_OF_BYTES = frozenset(
    {"ConvInteger", "DynamicQuantizeLSTM", "MatMulInteger", "QAttention", "QLinearConv", "QLinearMatMul"}
)
#: Since this release they can be made so.
_UNSIGNED = {"onnxruntime": ">=1.31"}


def ort(path: Path, provider: str = "CPUExecutionProvider", optimized: bool = True) -> Run:
    options = _options()
    if not optimized:
        options.graph_optimization_level = _levels().ORT_DISABLE_ALL
    return _session(path, options, [(provider, IN_FLOAT32.get(provider, {}))])


def reference(path: Path) -> Run:
    """ONNX Runtime without optimizations; or, of models that are added up in bytes where these saturate, with those that make weights unsigned.

    That ends the process of ONNX Runtime 1.24.
    """
    operators = {node.op_type for node in all_nodes(onnx.load(path, load_external_data=False))}
    if byte_products.are_exact() or operators.isdisjoint(_OF_BYTES) or not applies(_UNSIGNED):
        return ort(path, optimized=False)
    options = _options()
    options.graph_optimization_level = _levels().ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.x64quantprecision", "1")
    return _session(path, options, ["CPUExecutionProvider"])


def _options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def _levels() -> Any:
    import onnxruntime

    return onnxruntime.GraphOptimizationLevel


def _session(path: Path, options: Any, providers: list[Any]) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, options, providers=providers)
    return lambda feeds: list(session.run(None, feeds))


def openvino(path: Path) -> Run:
    import openvino as ov

    core = ov.Core()
    properties = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(core.read_model(path), "CPU", properties)
    return lambda feeds: list(compiled(feeds).values())


def ours(preset: str, path: Path, example: Any = None) -> Run:
    """On a preset; with the example where it says that this helps."""
    try:
        prepared = get_preset(preset).prepare(path, cache_dir=False)
    except OpenShapesError:
        if example is None:
            raise
        prepared = get_preset(preset).prepare(path, cache_dir=False, input_example=example)
    return lambda feeds: list(prepared.run(feeds))


#: The engine under each preset.
PLAIN: dict[str, Callable[[Path], Run]] = {
    "OrtCpu": ort,
    "OrtCuda": lambda path: ort(path, "CUDAExecutionProvider"),
    "Openvino": openvino,
    "OrtOpenvino": lambda path: ort(path, "OpenVINOExecutionProvider"),
}
