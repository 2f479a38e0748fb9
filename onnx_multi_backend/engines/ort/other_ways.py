# SPDX-License-Identifier: Apache-2.0
"""Other ways to give ONNX Runtime a model that it refuses as a whole, for what it, or its OpenVINO provider, makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.node_names import SAME_NAME, with_own_names
from onnx_multi_backend.engines.ort.openvino_ep.declared_types import UNKNOWN_RANK, with_types
from onnx_multi_backend.engines.ort.openvino_ep.empty_inputs import without_empty_inputs
from onnx_multi_backend.engines.ort.openvino_ep.half_constants import computed_ahead, takes_all
from onnx_multi_backend.engines.ort.openvino_ep.known_outputs import named_output, passed_on
from onnx_multi_backend.engines.ort.openvino_ep.loop_bodies import bodies_left, is_of_a_body
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.session import Built, Payload, RefusedError
from onnx_multi_backend.engines.vast_shapes import has_vast
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.graph_walk import FREE_INITIALIZERS
from onnx_multi_backend.models.plausible import is_endless

if TYPE_CHECKING:
    from onnx_multi_backend.engines.ort.target import OrtTarget

#: What ONNX Runtime says of a graph that goes in a circle.
_CIRCLE = "not acyclic"
#: What its releases say, below IR 4, of an initializer that is not an input and that no node of the main graph reads.
_NOT_INPUTS = ("should have created NodeArg for initializer", "initializers that are not graph inputs")


def build_otherwise(target: OrtTarget, payload: Payload, error: RefusedError | MisplacedError) -> Built | None:
    """The session of a model that was refused, built in the first other way that is taken; None where there is none.

    None too where the engine may never finish what it refused at once.

    Raises
    ------
    InvalidModelError
        It declares a vast shape, and is not valid: once a provider takes the rest, it takes the memory of that shape.
    """
    if is_endless(payload.adapted.facts.contents):
        return None
    if payload.lowering and has_vast(payload.adapted.proto):
        checks.check(payload.loaded, full=True)
    built = _whole(target, payload)
    if isinstance(error, MisplacedError):
        return built
    if built is None and SAME_NAME in error.words and payload.lowering:
        built = _changed(target, *with_own_names(payload), build=target.build)
    if built is None and payload.lowering and any(words in error.words for words in _NOT_INPUTS):
        built = _changed(target, *_with_free_initializers(payload), build=target.build)
    if built is None and _CIRCLE in error.words:
        built = _changed(target, *target.without_circles(payload, bodies=False))
    if built is None and UNKNOWN_RANK in error.words and payload.lowering:
        built = _with_known_ranks(target, payload)
    if built is None and is_of_a_body(error.words) and payload.lowering and target.rules:
        built = _changed(target, *bodies_left(payload), build=target.build)
    if built is None and payload.lowering and target.rules:
        output = named_output(payload.adapted.proto, error.words)
        # Where there is another such output, it is named then.
        built = _changed(target, *passed_on(payload, output), build=target.build) if output is not None else None
    if built is None and payload.lowering and target.leaves_named:
        from onnx_multi_backend.engines.ort.openvino_ep.named_nodes import left_as_named

        built = _changed(target, *left_as_named(payload, error.words), build=target.build)
    if built is None:
        built = _with_reductions(target, payload)
    if built is None and target.loses_empty_inputs:
        built = _changed(target, *without_empty_inputs(payload))
    return built


def _with_free_initializers(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload in the first IR version whose initializers need not be inputs."""
    model = ModelProto()
    model.CopyFrom(payload.adapted.proto)
    if model.ir_version >= FREE_INITIALIZERS:
        return payload, ()
    change = f"IR version {model.ir_version} to {FREE_INITIALIZERS}"
    model.ir_version = FREE_INITIALIZERS
    reason = f"ONNX Runtime wants initializers to be inputs before IR version {FREE_INITIALIZERS}"
    made = Adaptation("ir_version", "", change, reason)
    return payload.changed(model, made), (made,)


def _changed(
    target: OrtTarget,
    payload: Payload,
    changes: tuple[Adaptation, ...],
    build: Callable[[Payload], Built] | None = None,
) -> Built | None:
    """The session of a changed model, with the bodies of its loops left as well where that is what it is refused for.

    None where nothing is changed, or it is refused anyway.
    """
    if not changes:
        return None
    try:
        return (build or target.build_once)(payload).after(changes)
    except RefusedError as error:
        left, more = bodies_left(payload) if is_of_a_body(error.words) else (payload, ())
    try:
        return target.build_once(left).after((*changes, *more)) if more else None
    except RefusedError:
        return None


def _with_known_ranks(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model that declares what lies between the groups of nodes that a provider computes.

    Or else what reads a tensor of unknown rank is left to the CPU provider.
    """
    built = None
    if any(known.forgets_ranks for known in target.records):
        built = _changed(target, *with_types(payload), build=target.build)
    if built is None and target.rules:
        from onnx_multi_backend.engines.ort.openvino_ep.unknown_ranks import left_of_unknown_rank

        built = _changed(target, *left_of_unknown_rank(payload), build=target.build)
    return built


def _whole(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model that a provider takes whole, so that what it computes of float16 constants is right as it is.

    What a branch reads of it is other memory all the same.
    """
    if (
        not payload.lowering
        or payload.adapted.facts.contents.holding
        or not any(known.drops_cast_pairs for known in target.records)
    ):
        return None
    try:
        if not computed_ahead(payload, passes_on=False)[1]:
            return None
    except RefusedError:
        pass  # nothing can be computed ahead
    try:
        built = target.build_once(payload, ahead=False)
    except (RefusedError, MisplacedError):
        return None
    return built if takes_all(payload.adapted.proto, built.session.placement()) else None


def _with_reductions(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model whose reductions could not be kept apart: the CPU provider computes them."""
    if not payload.lowering or not any(known.mixes_reductions for known in target.records):
        return None
    from onnx_multi_backend.engines.ort.openvino_ep.lone_reductions import REDUCTIONS, reduced_alone

    if not reduced_alone(payload)[1]:
        return None
    try:
        built = target.build_once(payload, apart=False)
    except RefusedError:
        return None
    placed = built.session.placement()
    mixed = any(node.op_type in REDUCTIONS and node.provider != providers.CPU for node in placed)
    return None if mixed else built
