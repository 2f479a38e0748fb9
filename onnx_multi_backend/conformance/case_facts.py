# SPDX-License-Identifier: Apache-2.0
"""What a case's model tries: its operators in their versions, with the attributes and types they are given."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, defs, helper

from onnx_multi_backend.conformance.reading import take, take_texts
from onnx_multi_backend.models.tensors import element_name, onnx_type_string

#: The default domain, by the name that ONNX's documentation gives it.
DEFAULT_DOMAIN = "ai.onnx"

#: Values of attributes that are longer than this are distinguished by a digest.
_LONGEST = 60

#: What a type is called that nothing tells.
_UNKNOWN = "undefined"


@dataclass(frozen=True, slots=True)
class OperatorUse:
    """One operator of one model, all its nodes together.

    Parameters
    ----------
    domain : str
        ``ai.onnx`` for the default domain.
    op_type : str
    since_version : int
        Of the operator's schema in the opset that the model imports; 0 where onnx has no schema, as for a function
        that the model defines itself.
    top_level : bool
        Whether a node of the main graph is one: ONNX's own coverage looks no further.
    attributes : mapping of str to tuple of str
        The values that each attribute was given; a long one as a digest.
    types : tuple of str
        The types seen at inputs, as ``tensor(float)``.
    """

    domain: str
    op_type: str
    since_version: int
    top_level: bool
    attributes: Mapping[str, tuple[str, ...]]
    types: tuple[str, ...]

    @property
    def operator(self) -> tuple[str, str]:
        """Domain and type."""
        return self.domain, self.op_type

    def to_dict(self) -> dict[str, Any]:
        """Return the use as JSON has it."""
        return {
            "domain": self.domain,
            "op_type": self.op_type,
            "since_version": self.since_version,
            "top_level": self.top_level,
            "attributes": {name: list(values) for name, values in self.attributes.items()},
            "types": list(self.types),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OperatorUse:
        """Rebuild a use from what `to_dict` returned."""
        attributes = take(values, "attributes", Mapping)
        return cls(
            take(values, "domain", str),
            take(values, "op_type", str),
            take(values, "since_version", int),
            take(values, "top_level", bool),
            {name: take_texts(attributes, name) for name in attributes},
            take_texts(values, "types"),
        )


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What is known of a case before it runs: its kind, the name of its model's graph, and the operators there."""

    kind: str
    graph_name: str
    operators: tuple[OperatorUse, ...]

    @classmethod
    def of(cls, kind: str, model: ModelProto) -> CaseFacts:
        """Look at the model of a case."""
        return cls(kind, model.graph.name, operators_of(model))

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON has them; `from_dict` is the way back."""
        return {"kind": self.kind, "graph_name": self.graph_name, "operators": [u.to_dict() for u in self.operators]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CaseFacts:
        """Rebuild facts from what `to_dict` returned."""
        uses = tuple(map(OperatorUse.from_dict, take(values, "operators", list)))
        return cls(take(values, "kind", str), take(values, "graph_name", str), uses)


def operators_of(model: ModelProto) -> tuple[OperatorUse, ...]:
    """Return the operators of a model, those in subgraphs and local functions included, sorted by domain and type."""
    collector = _Collector()
    collector.graph(_with_types(model).graph, _opsets(model.opset_import), {}, top_level=True)
    for function in model.functions:
        collector.nodes(function.node, _opsets(function.opset_import), {}, top_level=False)
    return tuple(
        OperatorUse(
            *key,
            uses.since_version,
            uses.top_level,
            {name: tuple(sorted(values)) for name, values in sorted(uses.attributes.items())},
            tuple(sorted(uses.types)),
        )
        for key, uses in sorted(collector.found.items())
    )


@dataclass
class _Uses:
    since_version: int
    top_level: bool = False
    attributes: dict[str, set[str]] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)


class _Collector:
    def __init__(self) -> None:
        self.found: dict[tuple[str, str], _Uses] = {}

    def graph(self, graph: GraphProto, opsets: Mapping[str, int], outer: Mapping[str, str], *, top_level: bool) -> None:
        values = (*graph.input, *graph.value_info, *graph.output)
        types = {**outer, **{v.name: onnx_type_string(v.type) for v in values}}
        types.update({t.name: f"tensor({element_name(t.data_type)})" for t in graph.initializer})
        self.nodes(graph.node, opsets, types, top_level=top_level)

    def nodes(
        self, nodes: Iterable[NodeProto], opsets: Mapping[str, int], types: Mapping[str, str], *, top_level: bool
    ) -> None:
        for node in nodes:
            key = (_domain(node.domain), node.op_type)
            uses = self.found.setdefault(key, _Uses(_since_version(node, opsets)))
            uses.top_level = uses.top_level or top_level
            uses.types |= {types[name] for name in node.input if types.get(name, _UNKNOWN) != _UNKNOWN}
            for attribute in node.attribute:
                uses.attributes.setdefault(attribute.name, set()).add(_value(attribute))
                for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                    self.graph(graph, opsets, types, top_level=False)


def _with_types(model: ModelProto) -> ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model)
    except (onnx.shape_inference.InferenceError, RuntimeError):  # then the types stay those that are written down
        return model


def _domain(domain: str) -> str:
    return domain or DEFAULT_DOMAIN


def _opsets(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    return {_domain(o.domain): o.version for o in imports}


def _since_version(node: NodeProto, opsets: Mapping[str, int]) -> int:
    domain = _domain(node.domain)
    try:
        schema = defs.get_schema(node.op_type, opsets[domain], "" if domain == DEFAULT_DOMAIN else domain)
    except (defs.SchemaError, KeyError):
        return 0
    return int(schema.since_version)


def _value(attribute: AttributeProto) -> str:
    kind = attribute.type
    plain = (AttributeProto.TENSOR, AttributeProto.GRAPH, AttributeProto.SPARSE_TENSOR, AttributeProto.TENSORS)
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    text = str(helper.get_attribute_value(attribute)) if kind not in plain else ""
    if text and len(text) <= _LONGEST:
        return text
    word = AttributeProto.AttributeType.Name(kind).lower()
    return f"{word} {hashlib.sha256(attribute.SerializeToString(deterministic=True)).hexdigest()[:12]}"
