# SPDX-License-Identifier: Apache-2.0
"""Pass: write a flag that is neither 0 nor 1 as ONNX Runtime reads it.

ONNX defines 0 and 1 alone. Of other values, ``keepdims`` is 0 for onnx's inference and ONNX Runtime, and 1 for OpenVINO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import AttributeProto, NodeProto

from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.inlining import inlined

_ARGS = dict.fromkeys(("ArgMax", "ArgMin"), ("keepdims",))
_REDUCTIONS = {
    f"Reduce{name}": ("keepdims", "noop_with_empty_axes")
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
}
_POOLS = dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), ("ceil_mode",))

#: The flags that only 1 sets, by operator. Measured with ONNX Runtime 1.32.
_SET_BY_ONE: Mapping[str, tuple[str, ...]] = {
    **_ARGS,
    **_REDUCTIONS,
    **_POOLS,
    "Attention": ("is_causal",),
    "Cast": ("saturate",),
    "CastLike": ("saturate",),
    "Reshape": ("allowzero",),
    "RotaryEmbedding": ("interleaved",),
    "TopK": ("largest", "sorted"),
    "Unique": ("sorted",),
}

_WINDOWS = dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), ("periodic",))

#: The flags that everything but 0 sets.
_SET_BY_ANY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_ARGS, ("select_last_index",)),
    **_WINDOWS,
    "AffineGrid": ("align_corners",),
    "AveragePool": ("count_include_pad",),
    "DFT": ("inverse", "onesided"),
    "Gemm": ("transA", "transB"),
    "GridSample": ("align_corners",),
    "GRU": ("linear_before_reset",),
    "IsInf": ("detect_negative", "detect_positive"),
    "LSTM": ("input_forget",),
    "LpPool": ("count_include_pad",),
    "QuantizeLinear": ("saturate",),
    "Resize": ("antialias", "exclude_outside"),
    "STFT": ("onesided",),
    "SplitToSequence": ("keepdims",),
    "Trilu": ("upper",),
}
_OPERATORS = _SET_BY_ONE.keys() | _SET_BY_ANY.keys()


def flags(work: Work) -> None:
    """Write them, in the main graph, in subgraphs and in local functions."""
    if work.limits.takes_any_flag():
        return
    candidates = work.contents.of(*_OPERATORS)
    if work.model.functions and any(attribute.ref_attr_name for node in candidates for attribute in _flags(node)):
        flat = inlined(work.model)
        if not flat.functions and any(any(_odd(node)) for node in all_nodes(flat)):
            work.inline(flat, "a call of it gives a flag")
            candidates = work.contents.of(*_OPERATORS)
    if not any(any(_odd(node)) for node in candidates):
        return
    for node in all_nodes(work.edit()):
        for attribute in _odd(node):
            given, attribute.i = attribute.i, int(attribute.name not in _SET_BY_ONE.get(node.op_type, ()))
            where = f"{node.op_type} {node.name or node.output[0]!r}"
            change = f"{attribute.name}={given} written as {attribute.i}"
            work.changes.append(Adaptation("flags", where, change, "ONNX defines 0 and 1 alone"))


def _odd(node: NodeProto) -> Iterator[AttributeProto]:
    """The flags of a node that are neither 0 nor 1."""
    return (attribute for attribute in _flags(node) if not attribute.ref_attr_name and attribute.i not in (0, 1))


def _flags(node: NodeProto) -> Iterator[AttributeProto]:
    if node.op_type not in _OPERATORS or canonical(node.domain):
        return
    names = (*_SET_BY_ONE.get(node.op_type, ()), *_SET_BY_ANY.get(node.op_type, ()))
    yield from (attribute for attribute in node.attribute if attribute.name in names)
