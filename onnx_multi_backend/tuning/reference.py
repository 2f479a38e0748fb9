# SPDX-License-Identifier: Apache-2.0
"""The results that all others are compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.any_lane import AnyLane
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.differences import FLOAT32_NOISE, compare, noise_of
from onnx_multi_backend.tuning.lane import why
from onnx_multi_backend.tuning.trials import Trials

_PLAIN = Candidate(Setup("OrtCpu", None, {"session_options": {"graph_optimization_level": "ORT_DISABLE_ALL"}}))

#: Seconds that ONNX's evaluator gets: it is quick, or it is not for this model.
_QUICK = 20.0


class Reference(NamedTuple):
    """What the examples should come to.

    Attributes
    ----------
    outputs : list of tuple, optional
        None where there is no reference.
    words : str
        What computed them; empty where there are none.
    noise : float
        What float32 noise is in this model.
    note : str
        Why there is none, or not the usual one.
    """

    outputs: list[tuple[Any, ...]] | None
    words: str
    noise: float = FLOAT32_NOISE
    note: str = ""


def find(trials: Trials, *, limit: float) -> Reference:
    """Compute the examples with ONNX Runtime in float32 without graph optimizations, or else with ONNX's evaluator.

    A model whose results differ from one run to the next has no reference.

    Parameters
    ----------
    trials : Trials
    limit : float
        Seconds for all of it.
    """
    end = trials.seconds + limit

    def timed(lane: AnyLane) -> AnyLane:
        lane.limit = max(end - trials.seconds, 0.1)
        return lane

    with trials.apart(limit=limit) as lane:
        try:
            timed(lane).prepare(_PLAIN.key, _PLAIN.setup, _PLAIN.model)
            made = timed(lane).outputs(_PLAIN.key)[0]
            again, near = timed(lane).again(_PLAIN.key), timed(lane).nudged(_PLAIN.key)
        except OnnxMultiBackendError as error:
            failed = why(error)
        else:
            failed = ""
    if failed:
        return _evaluated(trials, min(max(end - trials.seconds, 1.0), _QUICK), failed)
    if compare(made[0], again).relative > 0:
        return Reference(None, "", note="the model's results differ from run to run, so no accuracy was measured")
    noise = noise_of(compare(made[0], near))
    return Reference(made, "OrtCpu in float32 without graph optimizations", noise)


def _evaluated(trials: Trials, limit: float, why_not_ort: str) -> Reference:
    with trials.apart(limit=limit) as lane:
        try:
            made, again = lane.evaluate(trials.examples), lane.evaluate(1)
        except OnnxMultiBackendError as error:
            return Reference(
                None, "", note=f"there is no reference. OrtCpu: {why_not_ort} ONNX's evaluator: {why(error)}"
            )
    if compare(made[0], again[0]).relative > 0:
        return Reference(None, "", note="the model's results differ from run to run, so no accuracy was measured")
    return Reference(made, "ONNX's reference evaluator", note=f"OrtCpu could not be the reference: {why_not_ort}")
