# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of the parts of a Split that are put together again.

Of parts that each stand several times it makes a Resize along the Split's axis, along whichever axis they are put together. Where they lose the axis
before, and are put together along an axis that counts from the end, the process ends. The axis is counted from the first one there, or
the larger of a value and itself, which is that value, put in the place of the first part.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, larger, of_kept_types, passed_from, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_LOSING_AXES = frozenset({"Cast", "Identity", "Reshape", "Squeeze"})
_REASON = "OpenVINO would make one operator of the Split and what puts its parts together, along another axis"


def parts_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such parts are kept apart from the Split; None where there are none."""
    if not contents.has({"Concat"}) or not contents.has({"Split"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    met = [[(place, node) for place, node in enumerate(nodes) if _is_met(node, walked)] for nodes in walked.views]
    if not any(met):
        return None
    axes = [{place: axis for place, node in own if (axis := _from_start(node, walked)) is not None} for own in met]
    read = [
        {place: node.input[0] for place, node in own if place not in told} for own, told in zip(met, axes, strict=True)
    ]
    kept = of_kept_types(contents, flat, read)
    found = [{**dict.fromkeys(own), **told} for own, told in zip(kept, axes, strict=True)]
    if not any(found):
        return None
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, axis: int | None, kept: dict[str, str]) -> Iterator[NodeProto]:
        change = "kept apart from the Split" if axis is None else "counts its axis from the first one"
        changes.append(Adaptation("parts_apart", f"Concat {node.name or node.output[0]!r}", change, _REASON))
        if axis is None:
            part = unused(f"{node.input[0]}{CAST}part", taken)
            yield larger(node.input[0], part, name=part)
            node.input[0] = part
        else:
            next(a for a in node.attribute if a.name == "axis").i = axis
        yield node

    return written(flat, found, write, changes)


def _is_met(node: NodeView, walked: Walked) -> bool:
    if node.operator != "Concat" or not node.input:
        return False
    before = passed_from(node.input[0], walked.makers, _LOSING_AXES)
    split = walked.makers.get(before)
    if split is None or split.op_type != "Split":
        return False
    if before != node.input[0]:
        return _axis(node.proto) < 0
    return len(set(node.input)) < len(node.input) and _axis(node.proto) != _axis(split, 0)


def _axis(node: NodeProto, default: int = 1) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), default)


def _from_start(node: NodeView, walked: Walked) -> int | None:
    """The axis of a Concat of parts without theirs, from the first one on; None where it is not known, or that changes nothing."""
    if len(set(node.input)) < len(node.input) or (rank := walked.rank(node.input[0])) is None:
        return None
    axis = _axis(node.proto) + rank
    return axis if 0 <= axis < rank else None
