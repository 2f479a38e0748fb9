# SPDX-License-Identifier: Apache-2.0
"""Rule: an operator that ONNX defines as a function is written as its body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx.inliner
from onnx import AttributeProto, FunctionProto, ModelProto, ValueInfoProto

from onnx_multi_backend.adapt.operators.affine_grid import with_any_batch
from onnx_multi_backend.adapt.operators.variance import with_deviations
from onnx_multi_backend.adapt.single_node import infer, opset_imports
from onnx_multi_backend.adapt.site import Site

_DOMAIN = "omb.body"


def expand_function(site: Site) -> Iterator[ModelProto]:
    """Put the body that the operator's schema holds, or makes for these inputs, in the node's place.

    The body becomes a local function and is inlined: onnx's own inlining of schemas' functions (1.23) stumbles over
    optional inputs that are omitted. Source: https://github.com/onnx/onnx/blob/main/docs/IR.md, "Functions".
    """
    for body in _bodies(site):
        if len(site.node.input) > len(body.input):  # it is made for other forms
            continue
        model = ModelProto()
        model.CopyFrom(site.model)
        node = model.graph.node[0]
        del node.attribute[:]
        known = {*body.attribute, *(a.name for a in body.attribute_proto)}
        node.attribute.extend(a for a in site.node.attribute if a.name in known)
        node.attribute.extend(_defaults(site, known - {a.name for a in site.node.attribute}))
        with_deviations(body)
        with_any_batch(body)
        body.domain = node.domain = _DOMAIN
        body.name = node.op_type
        model.functions.append(body)
        versions = {**site.opsets, **{o.domain: o.version for o in body.opset_import}}
        del model.opset_import[:]
        model.opset_import.extend(opset_imports({**versions, _DOMAIN: 1}))
        inlined = onnx.inliner.inline_local_functions(model)
        del inlined.opset_import[:]
        inlined.opset_import.extend(opset_imports(versions))
        if inlined.graph.node and not _changes_rank(inlined):
            yield inlined


def _changes_rank(body: ModelProto) -> bool:
    """Whether a body's result has more axes than the operator's: constants of one axis in it make one of a scalar."""
    bare = ModelProto()
    bare.CopyFrom(body)
    for value in bare.graph.output:
        value.ClearField("type")
    made = {value.name: _rank(value) for value in infer(bare).graph.output}
    return any(
        None not in (ranks := (_rank(value), made[value.name])) and ranks[0] != ranks[1] for value in body.graph.output
    )


def _rank(value: ValueInfoProto) -> int | None:
    tensor = value.type.tensor_type
    return len(tensor.shape.dim) if value.type.HasField("tensor_type") and tensor.HasField("shape") else None


def _defaults(site: Site, wanted: set[str]) -> Iterator[AttributeProto]:
    """The default values of attributes that the node leaves out: a local function does not know those of the schema."""
    declared = site.schema.attributes if site.schema is not None else {}
    return (
        declared[name].default_value for name in sorted(wanted & set(declared)) if declared[name].default_value.type
    )


def _bodies(site: Site) -> Iterator[FunctionProto]:
    """The bodies that the schema has for this form: one for each opset that it was written in, the newest first."""
    schema: Any = site.schema  # onnx's stubs lack these methods
    if schema is None:
        return
    for version in sorted(schema.function_opset_versions, reverse=True):
        yield FunctionProto.FromString(schema.get_function_with_opset_version(version))
    types = [found.SerializeToString() if (found := site.type(name)) else b"" for name in site.node.input]
    make = schema.get_context_dependent_function_with_opset_version
    for version in sorted(schema.context_dependent_function_opset_versions, reverse=True):
        try:
            made = make(version, site.node.SerializeToString(), types)
        except RuntimeError:  # the schema makes no body for this form
            continue
        yield FunctionProto.FromString(made)
