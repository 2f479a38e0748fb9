# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) gets wrong of products of two columns on processors without AVX.

Its kernel for products of at most two rows and columns of what only a run tells writes the second column over what it has yet to read. It is
right where the second operand is transposed, to which a Transpose before the product is taken. Each takes back what the other does.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.size import OPEN
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, larger, of_kept_types, written
from onnx_multi_backend.engines.across_nodes.kernels import processor_has
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_PRODUCTS = frozenset({"Gemm", "MatMul"})
_UNKNOWN = (OPEN, None)
_REASON = "OpenVINO would write the second column over what it has yet to read"


def products_turned(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such products have a second operand that is transposed; None where there are none."""
    if not contents.has(_PRODUCTS):
        return None
    walked = walked_of(contents)
    sizes = sizes_of(contents)

    def is_small(node: NodeView) -> bool:
        if node.operator not in _PRODUCTS or node.input[1] in walked.stored:
            return False
        turned = any(a.name == "transB" and a.i for a in node.proto.attribute)
        rows, columns = (None, None, *(sizes.get(node.input[1]) or ()))[-2:]
        return not turned and rows in (*_UNKNOWN, 1, 2) and columns in (*_UNKNOWN, 2)

    read = [{place: node.input[1] for place, node in enumerate(nodes) if is_small(node)} for nodes in walked.views]
    if not any(read) or processor_has("avx") or (flat := flat_for(contents)) is None:
        return None
    found = [
        {place: at for place, at in own.items() if (walked.rank(name[place]) or 0) > 1}
        for own, name in zip(of_kept_types(contents, flat, read), read, strict=True)
    ]
    if not any(found):
        return None
    taken = names_taken(flat)
    changes: list[Adaptation] = []

    def write(node: NodeProto, _: int, kept: dict[str, str]) -> Iterator[NodeProto]:
        name = node.input[1]
        if name not in kept:
            rank = walked.rank(name) or 2
            turn = [*range(rank - 2), rank - 1, rank - 2]
            there, apart, back = (unused(f"{name}{CAST}{suffix}", taken) for suffix in ("turned", "apart", "back"))
            yield helper.make_node("Transpose", [name], [there], name=there, perm=turn)
            yield larger(there, apart, name=apart)
            yield helper.make_node("Transpose", [apart], [back], name=back, perm=turn)
            kept[name] = back
        where = f"{node.op_type} {node.name or node.output[0]!r}"
        changes.append(Adaptation("products_turned", where, "by what is transposed twice", _REASON))
        node.input[1] = kept[name]
        yield node

    return written(flat, found, write, changes)
