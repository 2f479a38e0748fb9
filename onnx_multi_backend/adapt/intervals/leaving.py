# SPDX-License-Identifier: Apache-2.0
"""The nodes that leave int32, or that read what is another number there, and the inputs that these are computed from."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.sum_sizes import COUNTED
from onnx_multi_backend.adapt.intervals.values import LIMITS, STEPS, WIDE_UNSIGNED, Value, may_have_wrapped
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import WIDE

_T = TensorProto
_INT32 = LIMITS[_T.INT32]
_HALF = frozenset({_T.INT32, _T.UINT32})

#: Operators that only move elements or count them, or whose low 32 bits depend on the low 32 bits of what they read alone.
_KEEPS_BITS = frozenset(
    {
        *("Identity", "Reshape", "Transpose", "Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Unsqueeze"),
        *("Flatten", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Compress", "Split", "Dropout", "Concat"),
        *("Where", "Add", "Sub", "Mul", "Equal", "Trilu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
        *("BitCast", "If", *STEPS, "Shape", "Size", "SequenceConstruct", "SequenceLength"),
    }
)

#: Its squares may leave int32 where neither the elements nor the result do.
ROOT = "ReduceL2"


class Leaving:
    """Notes the nodes whose results leave int32, or that read an unsigned value beyond it.

    Parameters
    ----------
    assuming : bool
        Whether those count whose results leave it because of what sizes are assumed to be.

    Attributes
    ----------
    found : list of (NodeProto, frozenset of str)
        Each with the inputs that it is computed from.
    wrapped : list of (NodeProto, frozenset of str)
        Those that read an unsigned number which may be below 0, and so wraps around; found as well, unless no input makes it.
    counted : bool
        Whether it depends on how many elements are summed what is found.
    """

    def __init__(self, *, assuming: bool = True) -> None:
        self.assuming = assuming
        self.found: list[tuple[NodeProto, frozenset[str]]] = []
        self.wrapped: list[tuple[NodeProto, frozenset[str]]] = []
        self.counted = False

    @property
    def sources(self) -> frozenset[str]:
        """The inputs that the nodes found are computed from."""
        return frozenset().union(*(sources for _, sources in self.found))

    def __call__(self, node: NodeProto, operands: list[Value], made: Made) -> None:
        """Look at a node of any domain."""
        whole = made.whole
        if canonical(node.domain) or reads_product(node, operands):
            return
        if (
            whole is not None
            and (whole.elem_type in (_T.INT64, _T.UINT64) or (node.op_type == ROOT and whole.elem_type == _T.INT32))
            and whole.sources
            and whole.low is not None
        ):
            self.counted = self.counted or node.op_type in COUNTED
            if not whole.in_int32:
                if self.assuming or not whole.assumed:
                    self.found.append((node, whole.sources))
                return
        if _keeps_bits(node, operands):
            return
        for value in operands:
            wrapped = may_have_wrapped(value)
            beyond = value.elem_type in WIDE_UNSIGNED and value.low is not None and not value.in_int32
            if wrapped:
                self.wrapped.append((node, value.sources))
            if value.sources and (wrapped or beyond):
                self.found.append((node, value.sources))


def reads_product(node: NodeProto, operands: list[Value]) -> bool:
    """Whether it is the product of an input's own elements, which each run can be asked for."""
    return node.op_type in ("CumProd", "ReduceProd") and bool(operands) and operands[0].sources == {node.input[0]}


def _keeps_bits(node: NodeProto, operands: list[Value]) -> bool:
    """Whether the low 32 bits of a result depend on those of what the node reads alone."""
    if node.op_type == "Equal" and any(not value.sources and not value.in_int32 for value in operands):
        return False  # a constant beyond int32 is limited to it
    if node.op_type == "BitShift":
        return any(a.name == "direction" and a.s == b"LEFT" for a in node.attribute)
    if node.op_type == "Cast":
        kept = WIDE | _HALF if operands[0].elem_type == _T.UINT64 else _HALF
        return any(a.name == "to" and a.i in kept for a in node.attribute)
    return node.op_type in _KEEPS_BITS
