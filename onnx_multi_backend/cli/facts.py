# SPDX-License-Identifier: Apache-2.0
"""What a model is, read from the file alone; no engine is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from onnx_multi_backend.cli import console
from onnx_multi_backend.measuring.figures import bytes_text
from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors, operator_name
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.models.own_file import is_in
from onnx_multi_backend.models.tensors import TensorInfo, tensor_info

_EXTERNAL = 1  # TensorProto.DataLocation
#: Inputs with a default that are shown: before IR version 4 every weight is one.
_DEFAULTS = 10


@dataclass(frozen=True)
class ModelFacts:
    """A model's facts.

    Attributes
    ----------
    size, external_size : int
        Bytes of the model file and of the weights that lie in other files.
    inputs, outputs : list of TensorInfo
    defaults : set of str
        The inputs that have a default, so that a run need not give them.
    operators : Counter of str
        Nodes by operator, those of subgraphs and local functions included.
    """

    path: str
    size: int
    external_size: int
    graph: str
    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    defaults: set[str]
    operators: Counter[str]


def of(loaded: LoadedModel) -> ModelFacts:
    """Collect the facts of a model that was loaded from a file."""
    proto = loaded.proto
    assert loaded.path is not None
    external = [
        {e.key: e.value for e in t.external_data}
        for t in all_tensors(proto)
        if t.data_location == _EXTERNAL and not is_in(loaded.path, t)
    ]
    return ModelFacts(
        path=str(loaded.path),
        size=loaded.path.stat().st_size,
        external_size=sum(int(fields.get("length", 0)) for fields in external),
        graph=proto.graph.name,
        producer=" ".join(filter(None, (proto.producer_name, proto.producer_version))),
        ir_version=proto.ir_version,
        opsets={o.domain or "ai.onnx": o.version for o in proto.opset_import},
        inputs=[tensor_info(v) for v in proto.graph.input],
        outputs=[tensor_info(v) for v in proto.graph.output],
        defaults={t.name for t in proto.graph.initializer} | {t.values.name for t in proto.graph.sparse_initializer},
        operators=Counter(operator_name(n) for n in all_nodes(proto)),
    )


def show(model: ModelFacts) -> None:
    """Print the facts."""
    console.heading(model.path)
    external = f" and {bytes_text(model.external_size)} in other files" if model.external_size else ""
    rows = [
        ("size", bytes_text(model.size) + external),
        ("graph", model.graph or "-"),
        ("producer", model.producer or "-"),
        ("IR version", str(model.ir_version)),
        ("opsets", ", ".join(f"{domain} {version}" for domain, version in model.opsets.items())),
        ("nodes", str(model.operators.total())),
        ("operators", ", ".join(f"{name} {count}" for name, count in model.operators.most_common()) or "-"),
    ]
    console.facts(rows)
    required = [i for i in model.inputs if i.name not in model.defaults]
    for title, infos in (
        ("Inputs", required),
        ("Inputs with a default", [i for i in model.inputs if i.name in model.defaults]),
        ("Outputs", model.outputs),
    ):
        if infos or title != "Inputs with a default":
            console.line()
            console.heading(title)
            shown = infos[:_DEFAULTS] if title == "Inputs with a default" else infos
            console.facts([(i.name, f"{i.onnx_type} {shape(i)}") for i in shown] or [("none", "")])
            if len(shown) < len(infos):
                console.line(f"and {len(infos) - len(shown)} more, which --json lists", indent=2)


def to_json(model: ModelFacts) -> dict[str, Any]:
    """The facts for programs."""

    def described(info: TensorInfo) -> dict[str, Any]:
        return {"name": info.name, "type": info.onnx_type, "shape": None if info.shape is None else list(info.shape)}

    return {
        "path": model.path,
        "bytes": model.size,
        "external_bytes": model.external_size,
        "graph": model.graph,
        "producer": model.producer,
        "ir_version": model.ir_version,
        "opsets": model.opsets,
        "inputs": [{**described(i), "has_default": i.name in model.defaults} for i in model.inputs],
        "outputs": [described(i) for i in model.outputs],
        "operators": dict(model.operators.most_common()),
    }


def shape(info: TensorInfo) -> str:
    """A declared shape, ``[N, 3, ?]``; ``[...]`` where not even the rank is known."""
    if info.shape is None:
        return "[...]"
    return f"[{', '.join('?' if d is None else str(d) for d in info.shape)}]"
