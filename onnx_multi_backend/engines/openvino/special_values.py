# SPDX-License-Identifier: Apache-2.0
"""Operators whose NaN and infinities OpenVINO's CPU plugin (2026.4) gets wrong, on some processors or on all.

The user's own nodes run as OpenVINO runs them (docs/special-values.md lists what comes out); what rules write in a node's place
avoids these, because whoever asked for the operator gets what ONNX says of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.target import LARGE_NUMBERS, Lost

_T = TensorProto
_FLOATS = (_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16)

#: Measured with AVX-512 (AMD), AVX2 and SSE4.2.
_WRONG: Mapping[str, str] = {
    "Celu": "the Celu of NaN is 0",
    "Clip": "NaN becomes the lower limit",
    "Exp": "the exponential of NaN is infinite",
    "Greater": "a comparison with NaN is true with AVX-512 and with SSE4.2",
    "GreaterOrEqual": "a comparison with NaN is true with AVX-512 and with SSE4.2",
    "HardSigmoid": "the HardSigmoid of NaN is 1",
    "LogSoftmax": "a NaN leaves the rest of its row at -inf",
    "Max": "a NaN is kept only in the last operand",
    "Min": "a NaN is kept only in the last operand",
    "ReduceMax": "a NaN is lost, and the maximum of -inf alone is the lowest finite number",
    "ReduceMin": "a NaN is lost, and the minimum of inf alone is the largest finite number",
    "Relu": "the Relu of NaN is 0",
    "Softmax": "a NaN leaves the rest of its row at 0",
    "ThresholdedRelu": "numbers are multiplied by 0 or 1: NaN for -inf and for NaN",
}

#: Operators of the user's own nodes that may lose NaN, and what becomes of it: no rule writes them, because that would cost
#: every model time.
_NAN_LOST: Mapping[str, str] = {
    "Attention": "0 in its row",
    "Clip": "the lower limit",
    "Conv": "left out where it meets padding",
    "ConvTranspose": "infinite where the order of the sum decides",
    "Exp": "inf",
    "GRU": "what an activation makes of it",
    "GlobalMaxPool": "the largest of the others",
    "HardSigmoid": "1",
    "LRN": "left out of its neighbours' sums",
    "LSTM": "what an activation makes of it",
    "LogSoftmax": "-inf in the rest of its row",
    "Max": "the other operand",
    "MaxPool": "the largest of the others",
    "Min": "the other operand",
    "RNN": "what an activation makes of it",
    "ReduceLogSumExp": "inf, or a number",
    "Relu": "0",
    "Resize": "left out of its neighbours' sums",
    "ScatterElements": "left out of a maximum or minimum",
    "ScatterND": "left out of a maximum or minimum",
    "Softmax": "0 in the rest of its row",
    "SoftmaxCrossEntropyLoss": "a number",
    "TopK": "not among the largest",
    "Upsample": "left out of its neighbours' sums",
}

#: Operators that may lose the NaN that ONNX makes of inf, or make NaN of what is infinite in ONNX.
_INF_LOST: Mapping[str, str] = {
    "Attention": "0 in its row",
    "Conv": "left out where it meets padding, or NaN beside it",
    "ConvTranspose": "NaN or infinite, as the order of the sum decides",
    "Gelu": "NaN",
    "GridSample": "NaN beside it",
    "LogSoftmax": "-inf in the rest of its row",
    "Softmax": "0 in the rest of its row",
    "SoftmaxCrossEntropyLoss": "a number",
}

#: Operators that square or add numbers up on the way: what is infinite then, they make something else of than ONNX.
_LARGE_LOST: Mapping[str, str] = {
    "Conv": "infinite or NaN, as the order of the sum decides",
    "ConvTranspose": "infinite or NaN, as the order of the sum decides",
    "Gelu": "inf beyond half of the largest number",
    "GroupNormalization": "0 divided by an infinite variance",
    "HardSwish": "inf beyond a sixth of the largest number",
    "InstanceNormalization": "NaN, of an infinite variance",
    "LayerNormalization": "NaN, of an infinite variance",
    "MeanVarianceNormalization": "0 divided by an infinite variance",
}

#: What is reported where an input or a constant holds such a value.
LOST: Lost = {"NaN": _NAN_LOST, "inf": _INF_LOST, LARGE_NUMBERS: _LARGE_LOST}

#: The same for OpenVINO's execution providers, which read the model by themselves.
LOST_IN_PROVIDER: Lost = {**LOST, "NaN": {**_NAN_LOST, "Greater": "true", "GreaterOrEqual": "true"}}


def find(site: Site) -> Defect | None:
    """What is wrong with a node's special values; None where nothing is known, or the node is guarded."""
    words = _WRONG.get(site.op_type) if not site.domain else None
    if words is None or GUARDED in site.node.name or site.elem_type(site.input(0)) not in _FLOATS:
        return None
    if not site.op_type.startswith("Reduce") and 0 in (site.shape(site.input(0)) or ()):
        return None  # there are no values
    return Defect(words)
