# SPDX-License-Identifier: Apache-2.0
"""Int8 weights so far from 0 that sums of two of their products saturate: see `byte_products`."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.models.tensors import is_whole

#: Weights up to here saturate nowhere: 255 * (64 + 64) < 2**15.
_NARROW = 64


def is_wide(tensor: TensorProto) -> bool:
    """Whether weights of int8 are beyond that, or were not read."""
    if not is_whole(tensor):
        return True
    values = numpy_helper.to_array(tensor)
    return bool(values.size) and max(int(np.max(values)), -int(np.min(values))) > _NARROW
