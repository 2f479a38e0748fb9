# SPDX-License-Identifier: Apache-2.0
"""Have onnx infer the types of ONNX Runtime's own operators: in domains of our own, so that nothing else of onnx changes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator

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


def inferred(model: ModelProto, infer: Callable[[ModelProto], ModelProto]) -> ModelProto:
    """What `infer` makes of a model in which these nodes are of domains that onnx infers types in, with the nodes as they were.

    Nobody else sees the schemas: they are registered for that time, and ONNX's own count of its operators takes in all that are.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    wanted = set()
    for node in _known(copy):
        domain = canonical(node.domain)
        node.domain = _PREFIX + domain
        wanted.add((node.op_type, domain))
    copy.opset_import.extend(helper.make_opsetid(_PREFIX + domain, 1) for domain in OPERATORS)
    with _registered(wanted):
        found = infer(copy)
    for node in nodes_in(found.graph.node):
        if node.domain.startswith(_PREFIX):
            node.domain = node.domain.removeprefix(_PREFIX)
    kept = [given for given in found.opset_import if not given.domain.startswith(_PREFIX)]
    del found.opset_import[:]
    found.opset_import.extend(kept)
    return found


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


@contextlib.contextmanager
def _registered(operators: Collection[tuple[str, str]]) -> Iterator[None]:
    """Have onnx know the schemas of these operators, one thread at a time."""
    with _REGISTERING:
        try:
            for name, domain in operators:
                schema = onnx.defs.OpSchema(name, _PREFIX + domain, 1)
                schema.set_type_and_shape_inference_function(_inferring(OPERATORS[domain][name]))
                onnx.defs.register_schema(schema)
            yield
        finally:
            for name, domain in operators:
                if onnx.defs.has(name, 1, _PREFIX + domain):
                    onnx.defs.deregister_schema(name, 1, _PREFIX + domain)


def _inferring(infer: Callable[[Read], Iterator[Result]]) -> Callable[[InferenceContext], None]:
    def of_node(context: InferenceContext) -> None:
        for place, elem_type, dims in infer(Read(context)):
            if not elem_type or place >= context.get_num_outputs() or not context.has_output(place):
                continue
            made = TypeProto()
            made.tensor_type.elem_type = elem_type
            made.tensor_type.shape.SetInParent()
            made.tensor_type.shape.dim.extend(dims)
            context.set_output_type(place, made)

    return of_node
