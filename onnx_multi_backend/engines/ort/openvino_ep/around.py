# SPDX-License-Identifier: Apache-2.0
"""What a model needs before OpenVINO's execution provider gets it. Imported only where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.around import around
from onnx_multi_backend.engines.openvino.default_limits import may_leave_limits, with_limits
from onnx_multi_backend.engines.openvino.one_bound import without_clips_of_one_bound
from onnx_multi_backend.engines.ort.openvino_ep.cast_pairs import kept_apart
from onnx_multi_backend.engines.ort.openvino_ep.half_constants import computed_ahead
from onnx_multi_backend.engines.ort.openvino_ep.input_order import unused_last
from onnx_multi_backend.engines.ort.openvino_ep.left_around import left_around
from onnx_multi_backend.engines.ort.openvino_ep.lone_reductions import reduced_alone
from onnx_multi_backend.engines.ort.openvino_ep.loop_bodies import scans_left
from onnx_multi_backend.engines.ort.openvino_ep.raw_constants import in_raw_data
from onnx_multi_backend.engines.ort.openvino_ep.single_operands import operands_doubled
from onnx_multi_backend.engines.ort.records import Record
from onnx_multi_backend.engines.session import Payload

_Pass = Callable[[Payload], tuple[Payload, Sequence[Adaptation]]]


def mended(
    payload: Payload, records: Sequence[Record], *, apart: bool, ahead: bool, passes_on: bool
) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload around what these providers get wrong of whole models, and what was changed for that.

    Parameters
    ----------
    apart : bool
        Whether reductions are kept apart from Casts.
    ahead : bool
        Whether what may be wrong of float16 constants is computed ahead.
    passes_on : bool
        As `half_constants.computed_ahead` has it.
    """
    passes: list[_Pass] = [in_raw_data]
    if any(known.miscounts_inputs for known in records):
        passes.append(unused_last)
    if payload.lowering and any(known.leaves_text for known in records):
        passes += [left_around, scans_left]
    if payload.lowering and any(known.drops_cast_pairs for known in records):
        passes += [kept_apart, operands_doubled]
        if ahead:
            passes.append(partial(computed_ahead, passes_on=passes_on))
    if apart and payload.lowering and any(known.mixes_reductions for known in records):
        passes.append(reduced_alone)
    if payload.lowering and any(known.mixes_nodes for known in records):
        passes.append(_across_nodes)
    if payload.lowering:
        passes += [_limited, _without_clips]
    changes: tuple[Adaptation, ...] = ()
    for mend in passes:
        payload, more = mend(payload)
        changes = (*changes, *more)
    return payload, changes


def _limited(payload: Payload) -> tuple[Payload, Sequence[Adaptation]]:
    if not may_leave_limits(payload.adapted.facts.contents):
        return payload, ()
    model, changes = with_limits(payload.adapted.proto)
    return payload.changed(model, *changes), changes


def _without_clips(payload: Payload) -> tuple[Payload, Sequence[Adaptation]]:
    made = without_clips_of_one_bound(payload.adapted.facts, dies=False)
    if made is None:
        return payload, ()
    model, changes = made
    return payload.changed(model, *changes), changes


def _across_nodes(payload: Payload) -> tuple[Payload, Sequence[Adaptation]]:
    made = around(payload.adapted.facts.contents, in_onnx_runtime=True, stays_open=False)
    if made is None:
        return payload, ()
    return payload.changed(made.model, *made.changes, inserted=made.added), made.changes
