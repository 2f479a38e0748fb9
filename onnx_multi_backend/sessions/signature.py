# SPDX-License-Identifier: Apache-2.0
"""What a prepared model takes and returns, apart from any engine: enough to run it without the model itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.adapt import Adapted
from onnx_multi_backend.adapt.work import BoundaryType
from onnx_multi_backend.models.given import label_of
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.models.tensors import TensorInfo, dtype_of, tensor_info


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself, under the names that ONNX Runtime's ModelMetadata has.

    Attributes
    ----------
    producer_name, graph_name, domain, description, graph_description : str
    version : int
    custom_metadata_map : dict of str to str
    """

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]

    @classmethod
    def of(cls, proto: ModelProto) -> ModelMetadata:
        """Source: the fields of ONNX's ModelProto."""
        return cls(
            proto.producer_name,
            proto.graph.name,
            proto.domain,
            proto.doc_string,
            proto.graph.doc_string,
            proto.model_version,
            {entry.key: entry.value for entry in proto.metadata_props},
        )


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a model.

    Attributes
    ----------
    label : str
        How messages call the model.
    graph_name : str
    inputs : tuple of TensorInfo
        Those that every run needs.
    overridable : tuple of TensorInfo
        Inputs with a default.
    outputs : tuple of TensorInfo
    metadata : ModelMetadata
    input_edges, output_edges : mapping of str to Edge
        Those that the engine knows by another name and type.
    operators : frozenset of str
        Those of its nodes.
    """

    label: str
    graph_name: str
    inputs: tuple[TensorInfo, ...]
    overridable: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    metadata: ModelMetadata
    input_boundary_types: Mapping[str, BoundaryType]
    output_boundary_types: Mapping[str, BoundaryType]
    operators: frozenset[str] = frozenset()

    @property
    def dynamic(self) -> bool:
        """Whether an input has no fixed shape."""
        return any(i.shape is None or any(not isinstance(d, int) for d in i.shape) for i in self.inputs)


def signature(loaded: LoadedModel, adapted: Adapted) -> Signature:
    """The signature of a model as the user gave it, with what its adaptation changed at the edges."""
    graph = loaded.proto.graph
    defaults = loaded.defaults
    return Signature(
        loaded.label,
        graph.name,
        tuple(tensor_info(v) for v in graph.input if v.name not in defaults),
        tuple(tensor_info(v) for v in graph.input if v.name in defaults),
        tuple(tensor_info(v) for v in graph.output),
        ModelMetadata.of(loaded.proto),
        adapted.inputs,
        adapted.outputs,
        frozenset(loaded.contents.by_operator),
    )


def to_json(made: Signature) -> dict[str, Any]:
    """The signature as JSON values, without the label: a copy of the model may lie elsewhere."""

    def infos(values: Sequence[TensorInfo]) -> list[list[Any]]:
        return [[v.name, v.onnx_type, v.shape] for v in values]

    return {
        "graph_name": made.graph_name,
        "inputs": infos(made.inputs),
        "overridable": infos(made.overridable),
        "outputs": infos(made.outputs),
        "metadata": asdict(made.metadata),
        "input_edges": made.input_boundary_types,
        "output_edges": made.output_boundary_types,
        "operators": sorted(made.operators),
    }


def from_json(told: Mapping[str, Any], path: Path | None) -> Signature:
    """Undo `to_json`, for the model in this file."""

    def infos(values: Sequence[Sequence[Any]]) -> tuple[TensorInfo, ...]:
        return tuple(TensorInfo(n, dtype_of(t), None if s is None else tuple(s), t) for n, t, s in values)

    def edges(values: Mapping[str, Sequence[Any]]) -> dict[str, BoundaryType]:
        return {name: BoundaryType(*edge) for name, edge in values.items()}

    return Signature(
        label_of(path, told["graph_name"]),
        told["graph_name"],
        infos(told["inputs"]),
        infos(told["overridable"]),
        infos(told["outputs"]),
        ModelMetadata(**told["metadata"]),
        edges(told["input_edges"]),
        edges(told["output_edges"]),
        frozenset(told["operators"]),
    )
