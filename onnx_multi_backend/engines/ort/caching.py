# SPDX-License-Identifier: Apache-2.0
"""Keeping a session of the CPU provider: ONNX Runtime's own optimized model, with its weights beside it.

The weights lie in a file of their own, which ONNX Runtime maps into memory; the layouts are those of this CPU. Such a
model is loaded with all optimizations switched off: they are done, and a second pass would only cost time. (What
ONNX Runtime computes while it loads, such as packed weights, it computes again.) Measured with 1.31.1: 0.17 of the time of
a cold start for 48 MB of weights in few nodes, 0.65 for 11 MB in 400 nodes; the same in the .ort format, or with the
weights inside, is slower, and ``session.use_ort_model_bytes_for_initializers`` crashes.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.engines.ort.options import make_session_options
from onnx_multi_backend.host.versions import fits
from onnx_multi_backend.models.graph_walk import nodes_in

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

_MODEL = "model.onnx"

#: Weights of fewer bytes stay in the model.
_SMALL = "1024"

#: A user who asks for these wants files of their own.
_WRITES_MODELS = ("optimized_model_filepath", "session.optimized_model_external_initializers_file_name")

#: Read by ONNX Runtime when it loads a model, an optimized one too.
_UNRELEASED = "ALLOW_RELEASED_ONNX_OPSET_ONLY"


def parts_of(session_options: Any) -> tuple[object, ...] | None:
    """What session options mean for a kept session; None where it cannot be kept."""
    if session_options is None:
        session_options = {}
    if not isinstance(session_options, Mapping) or any(name in session_options for name in _WRITES_MODELS):
        return None
    return (sorted(session_options.items()), os.environ.get(_UNRELEASED))


def write_into(options: Any, folder: Path, model: ModelProto) -> None:
    """Let a session write its optimized model when it is made."""
    for file in folder.glob("*"):  # of an attempt that came to nothing
        file.unlink(missing_ok=True)
    options.optimized_model_filepath = str(folder / _MODEL)
    if _doubles_initializers() and _has_subgraphs(model):
        return
    # A name that no other entry has: whoever replaces this one, its model never meets the weights of another.
    weights = f"weights-{secrets.token_hex(8)}.bin"
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", weights)
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", _SMALL)


@functools.cache
def _doubles_initializers() -> bool:
    """Whether weights in a file of their own come with those of subgraphs written twice: 1.24.1 does so, 1.31.1 does not."""
    return fits(runtime.load().__version__, "<1.31")


def _has_subgraphs(model: ModelProto) -> bool:
    return sum(1 for _ in nodes_in(model.graph.node)) > len(model.graph.node)


def restored(entry: Entry, session_options: Any) -> Any:
    """The InferenceSession of an entry."""
    ort = runtime.load()
    options = make_session_options(session_options, external_data_folder=str(entry.folder))
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.session_class()(bytes(entry.files[_MODEL]), options, enable_fallback=0)
