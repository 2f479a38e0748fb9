# SPDX-License-Identifier: Apache-2.0
"""Products of bytes on processors without instructions for four at once.

Before VNNI, x86 multiplies unsigned by signed bytes and adds two products in 16 bits, which saturate: 255 times two weights above 64 is too
much. ONNX Runtime and OpenVINO compute with that instruction, and results are off by up to 40 %.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TensorProto

from onnx_multi_backend.engines.byte_sums.halved_weights import may_be_halved
from onnx_multi_backend.engines.byte_sums.unsigned_operands import OPERATORS, may_be_signed
from onnx_multi_backend.engines.byte_sums.wide_weights import is_wide
from onnx_multi_backend.models.contents import Contents

#: Any of these multiplies bytes and adds four products in 32 bits.
EXACT = frozenset({"avx512_vnni", "avx_vnni", "avx_vnni_int8", "amx_int8", "asimddp", "i8mm"})


def are_exact() -> bool:
    """Whether this processor adds products of bytes without saturation."""
    from onnx_multi_backend.host import processor  # asked of few models, and imported for these alone

    return bool(EXACT & processor.current().instruction_sets)


def may_saturate(contents: Contents) -> bool:
    """Whether sums of products of int8 weights, or of int8 that a run brings, may saturate on this processor."""
    weights = [t for t in contents.tensors if _is_weight(t)]
    made = contents.has({"QuantizeLinear"}) and _quantizes_to_int8(contents)
    given = contents.has(OPERATORS) and may_be_signed(contents)
    halved = bool(weights) and may_be_halved(contents)
    return bool(weights or made or given) and not are_exact() and (made or given or halved or bool(saturating(weights)))


def saturating(tensors: Iterable[TensorProto]) -> list[TensorProto]:
    """The int8 weights among tensors whose products may saturate; those too that were not read."""
    return [t for t in tensors if _is_weight(t) and is_wide(t)]


def _quantizes_to_int8(contents: Contents) -> bool:
    zeros = {t.name for t in contents.tensors if t.data_type == TensorProto.INT8}
    for node in contents.of("Constant"):
        if any(a.t.data_type == TensorProto.INT8 for a in node.attribute if a.name == "value"):
            zeros.add(node.output[0])
    return any(
        zeros.intersection(node.input[2:3])
        or any(a.name == "output_dtype" and a.i == TensorProto.INT8 for a in node.attribute)
        for node in contents.of("QuantizeLinear")
    )


def _is_weight(tensor: TensorProto) -> bool:
    return tensor.data_type == TensorProto.INT8 and len(tensor.dims) > 0
