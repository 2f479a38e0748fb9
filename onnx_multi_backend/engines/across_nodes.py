# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO gets wrong of several nodes together, where each alone is right. Its execution providers do the same."""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.channel_order import channels_in_order
from onnx_multi_backend.engines.low_precision import kept_in_place
from onnx_multi_backend.engines.unsigned_activations import unsigned


def around(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...], frozenset[str]]:
    """A copy of the model that OpenVINO computes rightly; the model itself where nothing is known.

    Returns
    -------
    model : onnx.ModelProto
    changes : tuple of Adaptation
    added : frozenset of str
        The names of the nodes that are new.
    """
    changes: list[Adaptation] = []
    added: set[str] = set()
    for mend in (channels_in_order, unsigned, kept_in_place):
        model, more, names = mend(model)
        changes += more
        added |= names
    return model, tuple(changes), frozenset(added)
