# SPDX-License-Identifier: Apache-2.0
"""Which kind of lane: in this process, or in one of its own."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.tuning.any_lane import AnyLane
from onnx_multi_backend.tuning.lane import Lane
from onnx_multi_backend.tuning.remote import RemoteLane


def lane_maker(
    models: Mapping[str, ModelLike], examples: Sequence[Mapping[str, Any]], *, processes: bool
) -> Callable[[], AnyLane]:
    """What makes lanes for some variants of a model and some inputs."""
    if not processes:
        return functools.partial(Lane, models, examples)
    return functools.partial(RemoteLane, pickle.dumps((dict(models), [dict(example) for example in examples])))
