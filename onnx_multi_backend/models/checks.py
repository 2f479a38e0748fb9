# SPDX-License-Identifier: Apache-2.0
"""Whether a model is valid, and one that the installed onnx knows."""

from __future__ import annotations

import functools
import re

import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from onnx_multi_backend.errors import InvalidModelError, UnsupportedModelError, shortened
from onnx_multi_backend.models import negative_sizes
from onnx_multi_backend.models.external_data import has_external_data
from onnx_multi_backend.models.graph_walk import (
    FREE_INITIALIZERS,
    all_nodes,
    all_tensors,
    canonical,
    nodes_in,
    operator_name,
)
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.models.missing_numbers import missing_number
from onnx_multi_backend.models.node_order import in_order
from onnx_multi_backend.models.odd_fields import odd_field
from onnx_multi_backend.models.plausible import expands_too_far, implausible
from onnx_multi_backend.models.skeleton import CHECKED_INITIALIZER_BYTES, skeleton_of
from onnx_multi_backend.models.tensors import is_whole
from onnx_multi_backend.models.undeclared import infers, without_declared
from onnx_multi_backend.models.untyped import may_crash

_INTEGERS = (TensorProto.INT64, TensorProto.INT32)

#: What the checker says where an engine may know better.
_LEFT_TO_ENGINES = re.compile(
    r"No Op registered for \w+ with domain_version|in initializer but not in graph input|No opset import for domain '[^']"
)
_UNORDERED = "must be topologically sorted"
_UNKNOWN_DOMAIN = "omb.unknown"

#: A newer opset of these is refused even where nothing of it is used: the engine may not know it either.
_RELEASED = ("", "ai.onnx.ml")


def checked(model: LoadedModel, *, adapts: bool) -> LoadedModel:
    """Refuse a model that is not valid or too new, and put its nodes in order.

    Parameters
    ----------
    adapts : bool
        Whether the model may be changed: otherwise the engine judges it.

    Raises
    ------
    InvalidModelError, UnsupportedModelError
    """
    check_versions(model)
    return model if not adapts or check(model) else model.in_order()


def check_versions(model: LoadedModel) -> None:
    """Refuse an IR or opset that the installed onnx does not know: no check and no adaptation could be trusted.

    Raises
    ------
    UnsupportedModelError
        Names the version, the highest known one, and the cure.
    """
    proto = model.proto
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedModelError(
            f"{model.label} has IR version {proto.ir_version}; the installed onnx {onnx.__version__} knows IR up to "
            f"{onnx.IR_VERSION}. Upgrade onnx, or export the model with an older IR version."
        )
    for opset in (*proto.opset_import, *(o for function in proto.functions for o in function.opset_import)):
        domain = canonical(opset.domain)
        newest = _known_opset(domain)
        if newest is None or opset.version <= newest:
            continue
        # A name that is not UTF-8 comes as bytes.
        users = sorted({str(operator_name(node)) for node in all_nodes(proto) if canonical(node.domain) == domain})
        if not users and domain not in _RELEASED:
            continue  # nothing of a preview is used
        raise UnsupportedModelError(
            f"{model.label} has opset {opset.version} of {domain or 'ai.onnx'}; the installed onnx {onnx.__version__} "
            f"knows opsets up to {newest}. Upgrade onnx, or export the model with an older opset.",
            operators=users,
        )


@functools.cache
def _known_opset(domain: str) -> int | None:
    """The newest opset of a domain that the installed onnx knows; None where it knows nothing of the domain."""
    if domain == "":
        return onnx.defs.onnx_opset_version()
    if domain == "ai.onnx.ml":
        return onnx.defs.onnx_ml_opset_version()
    schemas = onnx.defs.get_all_schemas_with_history()  # 20 ms
    return max((schema.since_version for schema in schemas if schema.domain == domain), default=None)


def check(model: LoadedModel, *, full: bool = False, refusal: str | None = None) -> bool:
    """Run the ONNX checker on the model without its large weights.

    An operator of the default domain that onnx does not know may be one that an engine adds, as ONNX Runtime adds SimplifiedLayerNormalization, a
    domain that is not imported may be one that it brings, and a model below IR 4 that ONNX Runtime has optimized holds initializers that are not
    inputs: the engine is asked. So are nodes in another order than ONNX asks for, which engines sort.

    Parameters
    ----------
    full : bool
        Infer the types too and hold them to the declared ones; costs more, and is wanted once an engine has refused.
    refusal : str, optional
        The engine's words: an unknown operator that they name is not one of its own.

    Returns
    -------
    bool
        Whether the nodes are in order.

    Raises
    ------
    InvalidModelError
        With the checker's own words.
    """
    if model.proto.functions:
        _check_calls(model)
    if found := odd_field(model.contents) or missing_number(model.contents):
        raise InvalidModelError(f"{model.label} is not a valid ONNX model: {found}. Export the model again.")
    if not full and model.skeleton is not None and not model.beside and _passes(model.skeleton):
        return True
    skeleton = skeleton_of(model.contents)
    full = full and not _may_not_end(skeleton)
    # Outside the main graph's initializers external data stays where it is, and is found by the model's path.
    source = str(model.path) if model.beside and has_external_data(skeleton) else skeleton
    error = _fault(skeleton, source, full=full)
    ordered = True
    if error is not None and _UNORDERED in str(error) and not has_external_data(skeleton):
        ordered, skeleton = False, in_order(skeleton)
        error = _fault(skeleton, skeleton, full=full)
    may_know = error is not None and _LEFT_TO_ENGINES.search(str(error)) and not has_external_data(skeleton)
    if may_know and not _is_damaged(skeleton) and not _unknown_in(refusal or "", skeleton):
        known = _leniently(skeleton)
        error = _fault(known, known, full=full)
    if error is not None:
        words = shortened(" ".join(str(error).split()))
        raise InvalidModelError(f"{model.label} is not a valid ONNX model: {words}{_hint(words)}") from error
    if full:
        _check_sizes(model)
    return ordered


def _passes(skeleton: bytes) -> bool:
    """Whether the checker finds nothing in an encoded model."""
    try:
        onnx.checker.check_model(skeleton)
    except (onnx.checker.ValidationError, ValueError):
        return False
    return True


def _fault(skeleton: ModelProto, source: ModelProto | str, *, full: bool) -> Exception | None:
    """What the checker finds wrong.

    The shapes that a model declares, other than those of its inputs, bind no engine: where onnx infers no fault without them, they
    are what is wrong.
    """
    shapeless = [v for v in (*skeleton.graph.input, *skeleton.graph.output) if _is_shapeless(v)]
    try:
        if not shapeless:
            onnx.checker.check_model(source, full_check=full)
        else:  # engines run values of unknown rank; the checker wants a shape of every input and output
            if full:
                onnx.shape_inference.infer_shapes(skeleton, check_type=True, strict_mode=True)
            _check_with_shapes(skeleton)
    except onnx.shape_inference.InferenceError as error:
        return _fault(skeleton, source, full=False) if infers(without_declared(skeleton, steps=True)) else error
    except (onnx.checker.ValidationError, ValueError, IndexError) as error:
        return error  # an IndexError where onnx (1.23) reads the first element of a constant that has none
    return None


def _leniently(model: ModelProto) -> ModelProto:
    """A copy in which the operators that onnx does not know belong to a domain of which the checker expects nothing.

    What uses a domain that is not imported gets the import: ONNX Runtime brings its own domains, and its tools leave it out.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(model.ir_version, FREE_INITIALIZERS)
    for node in _unknown_operators(copy):
        node.domain = _UNKNOWN_DOMAIN
    used = {_UNKNOWN_DOMAIN, *(node.domain for node in all_nodes(copy) if canonical(node.domain))}
    for opsets in (copy.opset_import, *(function.opset_import for function in copy.functions)):
        for domain in sorted(used - {opset.domain for opset in opsets}, key=str):  # bytes where it is not UTF-8
            opsets.add(domain=domain, version=1)
    return copy


def _is_damaged(model: ModelProto) -> bool:
    """Whether an operator's name is not UTF-8: the checker, which stops at the first fault, has not come to it yet."""
    return any(isinstance(node.op_type, bytes) for node in all_nodes(model))


def _unknown_in(refusal: str, model: ModelProto) -> bool:
    """Whether an engine names an operator that onnx does not know either, or a local function that has one."""
    names = {node.op_type for node in _unknown_operators(model)}
    callers = {f.name for f in model.functions if not names.isdisjoint(node.op_type for node in nodes_in(f.node))}
    return any(name in refusal for name in names | callers)


def _unknown_operators(model: ModelProto) -> list[NodeProto]:
    """The nodes of the default domain whose operator onnx does not know in the model's opset."""
    imported = (*model.opset_import, *(o for function in model.functions for o in function.opset_import))
    opset = max((o.version for o in imported if not canonical(o.domain)), default=1)
    local = {f.name for f in model.functions if not canonical(f.domain)}
    nodes = [n for n in all_nodes(model) if not canonical(n.domain) and n.op_type not in local]
    missing = {name for name in {n.op_type for n in nodes} if opset and not onnx.defs.has(name, opset)}
    return [n for n in nodes if n.op_type in missing]


def _check_calls(model: LoadedModel) -> None:
    """Hold the calls of local functions to what these take: the checker does not, and onnx's inliner ends with an assertion."""
    functions = {(canonical(f.domain), f.name, f.overload): f for f in model.proto.functions}
    for node in all_nodes(model.proto):
        function = functions.get((canonical(node.domain), node.op_type, node.overload))
        if function is None:
            continue
        for what, given, taken in (
            ("inputs", len(node.input), len(function.input)),
            ("outputs", len(node.output), len(function.output)),
        ):
            if given > taken:
                raise InvalidModelError(
                    f"{model.label} is not a valid ONNX model: a call of the local function {operator_name(node)} has {given} "
                    f"{what}, and the function has {taken}. Correct the call or the function."
                )


def _check_sizes(model: LoadedModel) -> None:
    """Refuse a tensor that holds more values than its shape says: the checker only knows of fewer."""
    for tensor in model.contents.tensors:
        if tensor.data_location != TensorProto.EXTERNAL and not is_whole(tensor):
            name = f"{tensor.name!r} " if tensor.name else ""
            raise InvalidModelError(
                f"{model.label} is not a valid ONNX model: the values that the tensor {name}holds are not as many as its shape "
                f"{list(tensor.dims)} says. Export the model again."
            )


def _may_not_end(model: ModelProto) -> bool:
    """Whether onnx's inference may crash on a model, or take it for too large a shape."""
    return (
        implausible(all_nodes(model)) is not None
        or expands_too_far(model)
        or may_crash(model)
        or negative_sizes.may_crash(model)
        or any(t.data_type in _INTEGERS and sum(t.dims) > CHECKED_INITIALIZER_BYTES for t in all_tensors(model))
    )


def _hint(words: str) -> str:
    """What to do about an operator that its opset does not have."""
    found = re.search(r"No Op registered for (\w+) with domain_version of (\d+)", words)
    if found is None:
        return ""
    name, opset = found.groups()
    known = [(s.since_version, s.domain) for s in onnx.defs.get_all_schemas_with_history() if s.name == name]
    first, domain = min(known, default=(0, ""))
    if first > int(opset):
        return f". {name} came with opset {first} of {domain or 'ai.onnx'}; the model imports {opset}. Export it with a newer one."
    if known:
        return f". Another domain has {name}. Correct the node's domain, or export the model again."
    return (
        f". The installed onnx {onnx.__version__} knows no operator {name}. Correct its name or its domain; if it is a "
        "newer one, upgrade onnx."
    )


def _is_shapeless(value: ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    return value.type.HasField("tensor_type") and tensor.elem_type != 0 and not tensor.HasField("shape")


def _check_with_shapes(skeleton: ModelProto) -> None:
    copy = ModelProto()
    copy.CopyFrom(skeleton)
    for value in (*copy.graph.input, *copy.graph.output):
        if _is_shapeless(value):
            value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(copy)
