# SPDX-License-Identifier: Apache-2.0
"""Around functions that OpenVINO (2025.4, 2026.4) recognizes where a model writes what is nearly one.

- A rotary embedding: ``x * cos + concat(-x[half:], x[:half]) * sin``. It looks neither at the bounds nor at whether cos and sin have as many columns
  as x, and reads other elements.
- Softmax: ``e = exp(x - max(x)); e / sum(e)``. It does not see that a sum without its axis is broadcast to columns, where rows and columns are as many.

The larger of a value and itself inside, which is that value, keeps them from being recognized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.written_norms import PASSED_OVER
from onnx_multi_backend.models.contents import Contents

_OVER = PASSED_OVER | {"Cast"}
_REASON = "OpenVINO would compute it as another function, which it nearly is"
#: What the functions are written in, each in all operators of a set.
_WRITTEN = (
    frozenset({"Slice", "Neg", "Concat", "Mul", "Add"}),
    frozenset({"Exp", "ReduceSum", "Div"}),
)


def lookalikes_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are computed as they are written; None where there are none."""
    if not any(all(contents.has({operator}) for operator in written) for written in _WRITTEN):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    search = _Search(contents)
    found = [dict(search.found(nodes)) for nodes in search.walked.views]
    return inputs_apart(flat, found, f"{CAST}written", "lookalikes_apart", "kept from being recognized", _REASON)


class _Search:
    """Looks for such nodes."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self.walked: Walked = walked_of(contents)

    def found(self, nodes: Sequence[NodeView]) -> Iterator[tuple[int, int]]:
        """The places of nodes of one graph, and of the inputs to be kept apart."""
        makers = {node.output[0]: node for node in nodes if node.operator}
        for place, node in enumerate(nodes):
            for at, name in enumerate(node.input):
                maker = makers.get(name)
                if maker is None:
                    continue
                if node.operator == "Mul" and maker.operator == "Concat":
                    meant = self._is_odd_rotation(node.input[1 - at], maker, makers)
                else:
                    meant = node.operator == "ReduceSum" and _loses_axis(node) and _is_made_by(name, "Exp", makers)
                if meant:
                    yield place, at
                    break

    def _is_odd_rotation(self, table: str, concat: NodeView, makers: Mapping[str, NodeView]) -> bool:
        """Whether halves of a value change places, and are not known to be halves, or another factor not to have as many columns."""
        if len(concat.input) != 2:
            return False
        first, second = (makers.get(name) for name in concat.input)
        if first is None or second is None or first.operator != "Neg":
            return False
        slices = [makers.get(first.input[0]), second]
        if any(part is None or part.operator != "Slice" for part in slices):
            return False
        parts = [part for part in slices if part is not None]
        whole = parts[0].input[0]
        if parts[1].input[0] != whole:
            return False
        own, one, other = (self._columns(name) for name in (whole, *(part.output[0] for part in parts)))
        tables = {table, *self._factors(whole, makers)}
        return own is None or one is None or one != other or any(self._columns(name) != own for name in tables)

    def _factors(self, name: str, makers: Mapping[str, NodeView]) -> Iterator[str]:
        """What a value is multiplied by."""
        for node in makers.values():
            if node.operator == "Mul" and name in node.input:
                yield node.input[1 - node.input.index(name)]

    def _columns(self, name: str) -> int | None:
        """The size of a value's last axis; None where it is not known."""
        sizes = sizes_of(self._contents).get(name)
        if sizes and isinstance(sizes[-1], int):
            return sizes[-1]
        kind = self.walked.told(name)
        dims = kind.shape.dim if kind is not None and kind.HasField("shape") else ()
        return dims[-1].dim_value if dims and dims[-1].HasField("dim_value") else None


def _is_made_by(name: str, operator: str, makers: Mapping[str, NodeView]) -> bool:
    """Whether an operator makes a value, perhaps before what is left out."""
    seen: set[str] = set()
    while (node := makers.get(name)) is not None and node.operator in _OVER and name not in seen:
        seen.add(name)
        name = node.input[0]
    return node is not None and node.operator == operator


def _loses_axis(node: NodeView) -> bool:
    return any(a.name == "keepdims" and not a.i for a in node.proto.attribute)
