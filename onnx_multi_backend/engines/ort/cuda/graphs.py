# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: what is captured in one run is replayed in later ones, on the memory that it was captured with.

So each binding to arrays of the device has a graph of its own, and every other run has none: a replay returns no outputs, and would read
the inputs of another run. Source: measured with ONNX Runtime 1.31.1, and
https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#using-cuda-graphs-preview
"""

from __future__ import annotations

from typing import Any

#: The entry of the run configuration that names the graph.
ENTRY = "gpu_graph_id"
#: Its value for a run that is neither captured nor a replay.
NONE = "-1"


def captures(native: Any) -> bool:
    """Whether a session captures its runs."""
    return any(options.get("enable_cuda_graph") == "1" for options in native.get_provider_options().values())
