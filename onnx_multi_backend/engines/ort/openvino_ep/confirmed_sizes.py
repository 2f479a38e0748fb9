# SPDX-License-Identifier: Apache-2.0
"""Sizes that only the model declares, left open where it branches, for OpenVINO's built-in provider.

OpenVINO (2025.4) does not follow an If whose shapes it does not know, and it does not read what a model declares of its results and of values
in between: it knows what follows from the inputs. A Reshape by what is given at run time has an open size, whatever is declared.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.session import Payload


def with_confirmed_sizes(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload without these sizes; itself where there are none, or it does not branch."""
    model = payload.adapted.proto
    if not payload.adapted.facts.contents.has({"If"}):
        return payload, ()
    bare = ModelProto()
    bare.CopyFrom(model)
    for value in _declared(bare.graph):
        for size in value.type.tensor_type.shape.dim:
            size.ClearField("value")
    confirmed = _declared_results(infer(bare).graph)
    opened = []
    for value, found, given in zip(
        _declared_results(bare.graph), confirmed, _declared_results(model.graph), strict=True
    ):
        value.CopyFrom(found)
        if _fixed(given) - _fixed(found):
            opened.append(given.name)
    if not opened:
        return payload, ()
    change = Adaptation(
        "confirmed_sizes",
        "",
        f"sizes left open that are only declared ({', '.join(map(repr, opened))})",
        "the OpenVINO execution provider does not read them, and does not follow an If whose shapes it does not know",
    )
    return payload.changed(bare, change), (change,)


def _declared(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """What a model declares of results and of values in between."""
    for inner in inner_first(graph):
        yield from inner.output
        yield from inner.value_info


def _declared_results(graph: GraphProto) -> list[ValueInfoProto]:
    return [value for inner in inner_first(graph) for value in inner.output]


def _fixed(value: ValueInfoProto) -> set[int]:
    """The places of the sizes that are numbers."""
    return {
        place for place, size in enumerate(value.type.tensor_type.shape.dim) if size.WhichOneof("value") == "dim_value"
    }
