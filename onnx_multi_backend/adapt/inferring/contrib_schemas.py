# SPDX-License-Identifier: Apache-2.0
"""Have onnx infer the types of ONNX Runtime's own operators: in domains that this package alone registers, so that nothing else of onnx changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper
from onnx.shape_inference import InferenceContext

from onnx_multi_backend.adapt.inferring.contrib_types import OPERATORS, Read, Result
from onnx_multi_backend.models.graph_walk import canonical, nodes_in

_PREFIX = "onnx_multi_backend.inferring."
_REGISTERING = threading.Lock()


def occur_in(model: ModelProto) -> bool:
    """Whether among the nodes of a model are some whose types are known here, and that onnx does not have in its opset."""
    return next(_known(model), None) is not None


def in_own_domains(model: ModelProto) -> ModelProto:
    """A copy of the model in which these nodes are of domains that onnx infers types in."""
    _register()
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in _known(copy):
        node.domain = _PREFIX + canonical(node.domain)
    copy.opset_import.extend(helper.make_opsetid(_PREFIX + domain, 1) for domain in OPERATORS)
    return copy


def in_their_domains(model: ModelProto) -> None:
    """Put the nodes of such a copy back into the domains that they are of."""
    for node in nodes_in(model.graph.node):
        if node.domain.startswith(_PREFIX):
            node.domain = node.domain.removeprefix(_PREFIX)
    kept = [given for given in model.opset_import if not given.domain.startswith(_PREFIX)]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def opset_of(model: ModelProto) -> int:
    """The version of ONNX's default domain in a model."""
    return max((given.version for given in model.opset_import if not canonical(given.domain)), default=1)


def _known(model: ModelProto) -> Iterator[NodeProto]:
    """Those nodes, without what stands in local functions, and calls of them."""
    opset, local = opset_of(model), {(function.domain, function.name) for function in model.functions}
    for node in nodes_in(model.graph.node, functions=bool(local)):
        domain = canonical(node.domain)
        if node.op_type not in OPERATORS.get(domain, ()) or (node.domain, node.op_type) in local:
            continue
        if domain or not onnx.defs.has(node.op_type, opset, ""):
            yield node


def _register() -> None:
    with _REGISTERING:
        for domain, operators in OPERATORS.items():
            for name, infer in operators.items():
                if not onnx.defs.has(name, 1, _PREFIX + domain):
                    schema = onnx.defs.OpSchema(name, _PREFIX + domain, 1)
                    schema.set_type_and_shape_inference_function(_inferring(infer))
                    onnx.defs.register_schema(schema)


def _inferring(infer: Callable[[Read], Iterator[Result]]) -> Callable[[InferenceContext], None]:
    def inferred(context: InferenceContext) -> None:
        for place, elem_type, dims in infer(Read(context)):
            if not elem_type or place >= context.get_num_outputs() or not context.has_output(place):
                continue
            made = TypeProto()
            made.tensor_type.elem_type = elem_type
            made.tensor_type.shape.SetInParent()
            made.tensor_type.shape.dim.extend(dims)
            context.set_output_type(place, made)

    return inferred
