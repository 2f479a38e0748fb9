# SPDX-License-Identifier: Apache-2.0
"""Products of bytes on processors without instructions for four at once.

Before VNNI, x86 multiplies unsigned by signed bytes and adds two products in 16 bits, which saturate: 255 times two weights above 64 is too
much. ONNX Runtime and OpenVINO compute with that instruction, and results are off by up to 40 %.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.models.tensors import is_whole

#: Any of these multiplies bytes and adds four products in 32 bits.
EXACT = frozenset({"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8", "asimddp", "i8mm"})

#: Weights up to here saturate nowhere: 255 * (64 + 64) < 2**15.
_NARROW = 64


def are_exact() -> bool:
    """Whether this processor adds products of bytes without saturation."""
    from onnx_multi_backend.host import processor  # asked of few models, and imported for these alone

    return bool(EXACT & processor.current().instruction_sets)


def may_saturate(tensors: Iterable[TensorProto]) -> bool:
    """Whether products of some int8 weights saturate on this processor."""
    weights = [t for t in tensors if _is_weight(t)]
    return bool(weights) and not are_exact() and bool(saturating(weights))


def saturating(tensors: Iterable[TensorProto]) -> list[TensorProto]:
    """The int8 weights among tensors whose products may saturate; those too that were not read."""
    return [t for t in tensors if _is_weight(t) and _is_wide(t)]


def _is_weight(tensor: TensorProto) -> bool:
    return tensor.data_type == TensorProto.INT8 and len(tensor.dims) > 1


def _is_wide(tensor: TensorProto) -> bool:
    if not is_whole(tensor):
        return True
    values = numpy_helper.to_array(tensor)
    return bool(values.size) and max(int(np.max(values)), -int(np.min(values))) > _NARROW
