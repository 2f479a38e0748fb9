# SPDX-License-Identifier: Apache-2.0
"""Having OpenVINO's frontend read a model, around what it gets wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.around import around
from onnx_multi_backend.engines.byte_sums import unsigned_weights
from onnx_multi_backend.engines.byte_sums.byte_products import may_saturate
from onnx_multi_backend.engines.openvino import constant_paths, in_place, mending, passing, runtime, wide_inputs
from onnx_multi_backend.engines.openvino.default_limits import may_leave_limits, with_limits
from onnx_multi_backend.engines.openvino.empty_constants import may_be_misread, with_shapes
from onnx_multi_backend.engines.openvino.encoding import misread, with_raw_data
from onnx_multi_backend.engines.openvino.naming import lost_inputs, with_identities
from onnx_multi_backend.engines.openvino.reading import holds_weights, read
from onnx_multi_backend.engines.openvino.single_precision import in_single, may_be_clamped
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.external_data import leads_out


class Read(NamedTuple):
    """A model as OpenVINO has it.

    Attributes
    ----------
    model : openvino.Model
    memory : object
        What it lives on.
    changes : tuple of Adaptation
    """

    model: Any
    memory: object
    changes: tuple[Adaptation, ...]


def read_model(payload: Payload) -> Read:
    """Read the model, changed where OpenVINO would read it wrongly."""
    loaded = payload.loaded
    folder = loaded.path.parent if loaded.path is not None else None
    contents, changes = _readable(payload)
    made, memory = None, None
    if (
        (path := payload.path) is not None
        and not changes
        and (loaded.beside or not holds_weights(contents.model, loaded))
    ):
        linked = folder is not None and loaded.mapped and leads_out(contents.model, folder)
        made = None if linked else runtime.core().read_model(path)
    if made is None:
        made, memory = read(contents.model, loaded)
    if lost_inputs(made, contents.model.graph):
        model, more = with_identities(contents.model)
        made, memory = read(model, loaded)
        contents, changes = Contents(model), (*changes, *more)
    if payload.lowering:
        changes = (*changes, *wide_inputs.in_float(made), *mending.mend(made, contents), *passing.keep_apart(made))
        changes = (*changes, *in_place.keep_inputs(made, contents), *constant_paths.fold(made, contents))
    return Read(made, memory, changes)


def readable(model: ModelProto) -> ModelProto:
    """A (small) model as OpenVINO reads it rightly."""
    return with_shapes(model)[0] if may_be_misread(Contents(model)) else model


def _readable(payload: Payload) -> tuple[Contents, tuple[Adaptation, ...]]:
    """The model as OpenVINO reads it rightly, and what was changed for that."""
    contents = payload.adapted.facts.contents
    changes: tuple[Adaptation, ...] = ()
    if misread(contents.tensors):
        model, changes = with_raw_data(payload.loaded.whole(contents.model))
        contents = Contents(model)
    if not payload.lowering:
        return contents, changes
    if may_be_misread(contents):
        model, more = with_shapes(payload.loaded.whole(contents.model))
        contents, changes = Contents(model), (*changes, *more)
    if may_leave_limits(contents):
        model, more = with_limits(payload.loaded.whole(contents.model))
        contents, changes = Contents(model), (*changes, *more)
    if may_saturate(contents):
        whole = payload.loaded.whole(contents.model)
        model, more = unsigned_weights.with_unsigned_weights(
            whole, unsigned_weights.SATURATING_ON_OPENVINO, on_openvino=True
        )
        contents, changes = Contents(model), (*changes, *more)
    if (rewritten := around(contents, stays_open=payload.shapes is None)) is not None:
        contents, changes = Contents(rewritten.model), (*changes, *rewritten.changes)
    if may_be_clamped(payload.adapted.facts.contents, payload.loaded.path):
        model, more = in_single(payload.loaded.whole(contents.model), payload.loaded.path)
        contents, changes = Contents(model), (*changes, *more)
    return contents, changes
