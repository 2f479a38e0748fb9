# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings that are written out, and what is nearly one: ``x * cos + concat(-x[half:], x[:half]) * sin``.

OpenVINO (2025.4, 2026.4) recognizes them by their nodes. It looks neither at which part is where, nor at the bounds, nor at whether the tables cos
and sin have the sizes of x.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from onnx import NodeProto

from onnx_multi_backend.adapt.sizes.size import OPEN, Size, Sizes
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import maker_before
from onnx_multi_backend.engines.written_norms import PASSED_OVER
from onnx_multi_backend.models.contents import Contents

#: What a rotation is written in.
OPERATORS = frozenset({"Add", "Concat", "Mul"})
PARTING = frozenset({"Slice", "Split"})


class _Part(NamedTuple):
    """A part of a value, and whether it is the second of two halves; None where it is not known to be a half."""

    whole: str
    second: bool | None


class Rotations:
    """Tells those apart of one model."""

    def __init__(self, contents: Contents) -> None:
        self._walked = walked_of(contents)
        self._sizes = sizes_of(contents)

    def is_odd(self, table: str, concat: NodeProto, makers: Mapping[str, NodeProto]) -> bool:
        """Whether a Concat of parts, multiplied by a table, may be taken for a rotary embedding, and is not known to be one."""
        if len(concat.input) != 2:
            return False
        negated = [self._negated(name, makers) for name in concat.input]
        if negated.count(None) != 1:
            return False
        names = [name if of is None else of for name, of in zip(concat.input, negated, strict=True)]
        first, second = (self._part(name, makers) for name in names)
        if first is None or second is None or first.whole != second.whole:
            return False
        right = negated[1] is None and first.second is True and second.second is False
        tables = {table, *self._factors(first.whole)}
        return not right or not all(self._fits(self._sizes.get(first.whole), name) for name in tables)

    def _negated(self, name: str, makers: Mapping[str, NodeProto]) -> str | None:
        """What a value is the negative of, or the product with a constant; None for another value."""
        maker = maker_before(name, makers, PASSED_OVER)
        if maker is None or maker.op_type not in ("Mul", "Neg"):
            return None
        read = [other for other in maker.input if other not in self._walked.fixed]
        return read[0] if len(read) == 1 else None

    def _part(self, name: str, makers: Mapping[str, NodeProto]) -> _Part | None:
        """The value that a Slice or a Split takes a part of, along its last axis."""
        maker = maker_before(name, makers, PASSED_OVER)
        if maker is None or maker.op_type not in PARTING:
            return None
        whole = maker.input[0]
        own, part = self._columns(whole), self._columns(name)
        if own is None or part is None or own != 2 * part:
            return _Part(whole, None)
        if maker.op_type == "Split":
            return _Part(whole, list(maker.output).index(name) == 1 if name in maker.output else None)
        start, end = (self._number(maker, place) for place in (1, 2))
        if end is not None and end >= own:  # the half is often computed of a shape
            return _Part(whole, second=True)
        return _Part(whole, None if start not in (0, part, -part) else start != 0)

    def _number(self, node: NodeProto, place: int) -> int | None:
        """The single number that a node reads, where it is a constant."""
        held = self._walked.array(node.input[place]) if place < len(node.input) else None
        return int(held.ravel()[0]) if held is not None and held.size == 1 else None

    def _factors(self, name: str) -> Iterator[str]:
        """What a value is multiplied by."""
        for readers in self._walked.readers:
            for node in readers.get(name, ()):
                if node.op_type == "Mul":
                    yield node.input[1 - list(node.input).index(name)]

    def _fits(self, own: Sizes | None, table: str) -> bool:
        """Whether a table has as many columns as a value of these sizes, and no other size that would add to its own."""
        sizes = self._sizes.get(table)
        if sizes is None:
            columns = self._columns(table)
            return columns is not None and own is not None and columns == own[-1]
        if not own or not sizes or sizes[-1] != own[-1] or len(sizes) > len(own):
            return False
        return all(map(_adds_nothing, own[-len(sizes) :], sizes))

    def _columns(self, name: str) -> int | None:
        """The size of a value's last axis; None where it is not known."""
        sizes = self._sizes.get(name)
        if sizes and isinstance(sizes[-1], int):
            return sizes[-1]
        kind = self._walked.told(name)
        dims = kind.shape.dim if kind is not None and kind.HasField("shape") else ()
        return dims[-1].dim_value if dims and dims[-1].HasField("dim_value") else None


def _adds_nothing(own: Size, other: Size) -> bool:
    return other in (1, own) or (other in (OPEN, None) and own in (OPEN, None))
