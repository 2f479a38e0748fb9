# SPDX-License-Identifier: Apache-2.0
"""What a prepared model takes and returns, apart from any engine: enough to run it without the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx_multi_backend.adapt import Adapted
from onnx_multi_backend.adapt.work import Edge
from onnx_multi_backend.graph_walk import defaults_of
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.tensors import TensorInfo, tensor_info


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model.

    Attributes
    ----------
    label : str
        How messages call the model.
    inputs : tuple of TensorInfo
        Those that every run needs.
    overridable : tuple of TensorInfo
        Inputs with a default.
    outputs : tuple of TensorInfo
    input_edges, output_edges : mapping of str to Edge
        Those that the engine knows by another name and type.
    """

    label: str
    inputs: tuple[TensorInfo, ...]
    overridable: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    input_edges: Mapping[str, Edge]
    output_edges: Mapping[str, Edge]

    @property
    def dynamic(self) -> bool:
        """Whether an input has no fixed shape."""
        return any(i.shape is None or any(not isinstance(d, int) for d in i.shape) for i in self.inputs)


def signature(loaded: LoadedModel, adapted: Adapted) -> Signature:
    """The signature of a model as the user gave it, with what its adaptation changed at the edges."""
    graph = loaded.proto.graph
    defaults = defaults_of(graph)
    return Signature(
        loaded.label,
        tuple(tensor_info(v) for v in graph.input if v.name not in defaults),
        tuple(tensor_info(v) for v in graph.input if v.name in defaults),
        tuple(tensor_info(v) for v in graph.output),
        adapted.inputs,
        adapted.outputs,
    )
