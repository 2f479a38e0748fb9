# SPDX-License-Identifier: Apache-2.0
"""Models in ONNX Runtime's own format (``.ort``), which ONNX Runtime turns back into ONNX."""

from __future__ import annotations

import functools
import importlib
import tempfile
from pathlib import Path

import onnx
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError, UnsupportedModelError, shortened
from onnx_multi_backend.models.graph_walk import graphs_in
from onnx_multi_backend.models.ort_outputs import restore

#: What stands behind the first four bytes of such a file. Source: onnxruntime/core/flatbuffers/schema/ort.fbs.
_IDENTIFIER = b"ORTM"


def is_ort_format(data: bytes) -> bool:
    """Whether these bytes are a model in ONNX Runtime's own format."""
    return data[4:8] == _IDENTIFIER


def to_onnx(data: bytes, where: str) -> ModelProto:
    """The same model as ONNX, written by ONNX Runtime without any optimization.

    Parameters
    ----------
    where : str
        How messages call the model.

    Raises
    ------
    UnsupportedModelError
        ONNX Runtime is not installed.
    InvalidModelError
        It cannot read the model, with its words.
    """
    try:
        ort = importlib.import_module("onnxruntime")
        # Not `ort.InferenceSession`, which may have been replaced by this package's.
        session_class = importlib.import_module("onnxruntime.capi.onnxruntime_inference_collection").InferenceSession
    except ImportError as error:
        raise UnsupportedModelError(
            f"{where} is in ONNX Runtime's own format (.ort), which ONNX Runtime alone reads, and it is not installed. Install "
            "it, for example with pip install onnxruntime, or give the .onnx file that it was made of."
        ) from error
    with tempfile.TemporaryDirectory(prefix="omb_") as folder:
        written = Path(folder) / "model.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.optimized_model_filepath = str(written)
        options.add_session_config_entry("session.save_model_format", "ONNX")
        try:
            session_class(data, options, providers=["CPUExecutionProvider"])
        except native_errors() as error:
            words = shortened(" ".join(str(error).split()))
            raise InvalidModelError(
                f"{where} is in ONNX Runtime's own format, and ONNX Runtime {ort.__version__}: {words}"
            ) from error
        model = onnx.load(written)
    restore(model.graph, data)
    for graph in graphs_in(model.graph):
        graph.name = graph.name or "ort"  # ONNX asks for one, and the format keeps none
    return model


@functools.cache
def native_errors() -> tuple[type[Exception], ...]:
    """Everything that ONNX Runtime's native code raises."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    found = (c for c in vars(state).values() if isinstance(c, type) and issubclass(c, Exception))
    return (*found, RuntimeError, ValueError, TypeError)
