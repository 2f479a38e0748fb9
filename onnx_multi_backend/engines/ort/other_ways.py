# SPDX-License-Identifier: Apache-2.0
"""Other ways to give ONNX Runtime a model that it refuses, for what its OpenVINO provider makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.declared_types import UNKNOWN_RANK, with_types
from onnx_multi_backend.engines.ort.empty_inputs import without_empty_inputs
from onnx_multi_backend.engines.ort.half_constants import computed_ahead, takes_all
from onnx_multi_backend.engines.ort.known_outputs import names_output, passed_on
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.engines.session import Built, Payload, RefusedError

if TYPE_CHECKING:
    from onnx_multi_backend.engines.ort.target import OrtTarget

#: What ONNX Runtime says of a graph that goes in a circle.
_CIRCLE = "not acyclic"


def build_otherwise(target: OrtTarget, payload: Payload, error: RefusedError | MisplacedError) -> Built | None:
    """The session of a model that was refused, built in the first other way that is taken; None where there is none."""
    built = _whole(target, payload)
    if isinstance(error, MisplacedError):
        return built
    built = built or (_without_circles(target, payload) if _CIRCLE in error.words else None)
    built = built or (_with_types(target, payload) if UNKNOWN_RANK in error.words else None)
    built = built or (_without_unknown_ranks(target, payload) if UNKNOWN_RANK in error.words else None)
    built = built or (_with_known_outputs(target, payload, error) if names_output(error.words) else None)
    return built or _with_reductions(target, payload) or _without_empty_inputs(target, payload)


def _without_circles(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model in which a provider made groups of nodes that wait for themselves."""
    apart, changes = target.without_circles(payload, bodies=False)
    try:
        return target.build_once(apart).after(changes) if changes else None
    except RefusedError:
        return None


def _with_types(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model that declares what lies between the groups of nodes that a provider computes."""
    if not payload.lowering or not any(known.forgets_ranks for known in target.records):
        return None
    typed, changes = with_types(payload)
    try:
        return target.build(typed).after(changes) if changes else None
    except RefusedError:
        return None


def _without_unknown_ranks(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model whose nodes that read a tensor of unknown rank are left to the CPU provider."""
    if not payload.lowering or not target.rules:
        return None
    from onnx_multi_backend.engines.ort.unknown_ranks import left_of_unknown_rank

    left, changes = left_of_unknown_rank(payload)
    try:
        return target.build_once(left).after(changes) if changes else None
    except RefusedError:
        return None


def _whole(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model that a provider takes whole, so that what it computes of float16 constants is right as it is."""
    if not payload.lowering or not any(known.drops_cast_pairs for known in target.records):
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


def _with_known_outputs(target: OrtTarget, payload: Payload, error: RefusedError) -> Built | None:
    """The session of a model of which an output is known before anything runs; the next one, where there is one, is named then."""
    if not payload.lowering or not target.rules:
        return None
    passing, changes = passed_on(payload, error.words)
    try:
        return target.build(passing).after(changes) if changes else None
    except RefusedError:
        return None


def _with_reductions(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model whose reductions could not be kept apart: the CPU provider computes them."""
    if not payload.lowering or not any(known.mixes_reductions for known in target.records):
        return None
    from onnx_multi_backend.engines.ort.lone_reductions import REDUCTIONS, reduced_alone

    if not reduced_alone(payload)[1]:
        return None
    try:
        built = target.build_once(payload, apart=False)
    except RefusedError:
        return None
    placed = built.session.placement()
    mixed = any(node.op_type in REDUCTIONS and node.provider != providers.CPU for node in placed)
    return None if mixed else built


def _without_empty_inputs(target: OrtTarget, payload: Payload) -> Built | None:
    """The session of a model whose inputs without elements are constants."""
    if not target.loses_empty_inputs:
        return None
    filled, changes = without_empty_inputs(payload)
    if not changes:
        return None
    try:
        return target.build_once(filled).after(changes)
    except RefusedError:
        return None
