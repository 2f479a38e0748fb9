# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO gets wrong of several nodes together, where each alone is right. Its execution providers do the same."""

from __future__ import annotations

import functools

from onnx_multi_backend.engines.channel_order import channels_in_order
from onnx_multi_backend.engines.low_precision import kept_in_place
from onnx_multi_backend.engines.nan_made import nan_kept
from onnx_multi_backend.engines.reduced_axes import axes_moved
from onnx_multi_backend.engines.rewritten import Rewritten
from onnx_multi_backend.engines.unsigned_activations import unsigned
from onnx_multi_backend.models.contents import Contents


def around(contents: Contents, *, compared: bool = False) -> Rewritten | None:
    """A copy of the model that OpenVINO computes rightly; None where nothing is known.

    Parameters
    ----------
    contents : Contents
    compared : bool
        Whether comparisons are true of NaN.
    """
    found: Rewritten | None = None
    for mend in (
        channels_in_order,
        unsigned,
        kept_in_place,
        axes_moved,
        functools.partial(nan_kept, compared=compared),
    ):
        made = mend(contents)
        if made is not None:
            contents = Contents(made.model)
            before = found or Rewritten(made.model, ())
            found = Rewritten(made.model, (*before.changes, *made.changes), before.added | made.added)
    return found
