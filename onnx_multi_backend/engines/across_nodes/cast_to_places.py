# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO of the execution provider (2025.4) makes of a NonZero behind several Casts, one of which cuts numbers to integers.

It leaves them all out, and 0.3 is not zero. The larger of a value and itself, which is that value, keeps them; of a truth value, both of it and itself.
One Cast alone is seen to elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, kept_types, larger, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would leave out the Casts before it, and with them that numbers are cut to integers"


def places_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from the Casts; None where there are none."""
    if not contents.has({"NonZero"}) or not contents.has({"Cast"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [{i: kind for i, node in enumerate(nodes) if (kind := _kind(node, walked))} for nodes in walked.views]
    if not any(found):
        return None
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, kind: int, kept: dict[str, str]) -> Iterator[NodeProto]:
        read = node.input[0]
        apart = unused(f"{read}{CAST}places", taken)
        where = f"NonZero {node.name or node.output[0]!r}"
        changes.append(Adaptation("places_apart", where, "kept apart from the Casts before it", _REASON))
        if kind == TensorProto.BOOL:
            yield helper.make_node("And", [read, read], [apart], name=apart)
        else:
            yield larger(read, apart, name=apart)
        node.input[0] = apart
        yield node

    return written(flat, found, write, changes)


def _kind(node: NodeView, walked: Walked) -> int:
    """The type that such a node reads; 0 of any other one."""
    casts = list(_casts_before(node.input[0], walked)) if node.operator == "NonZero" else []
    if not casts or casts[0] in INTEGER_BITS or not any(kind in INTEGER_BITS for kind in casts[1:]):
        return 0
    types = kept_types(opset_versions(walked.flat).get("", 1))
    return casts[0] if casts[0] == TensorProto.BOOL or types is None or casts[0] in types else 0


def _casts_before(name: str, walked: Walked) -> Iterator[int]:
    """The types of the Casts that a value comes of, with nothing between them, the last one first."""
    while (maker := walked.makers.get(name)) is not None and maker.op_type in ("Cast", "Identity"):
        yield from (a.i for a in maker.attribute if a.name == "to")
        name = maker.input[0]
