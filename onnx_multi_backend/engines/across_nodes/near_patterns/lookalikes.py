# SPDX-License-Identifier: Apache-2.0
"""Around functions that OpenVINO (2025.4, 2026.4) recognizes where a model writes what is nearly one.

- A rotary embedding; see `rotations`.
- Softmax: ``e = exp(x - max(x)); e / sum(e)``. It does not see that a sum without its axis is broadcast to columns, where rows and columns are as many.

The larger of a value and itself inside, which is that value, keeps them from being recognized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before
from onnx_multi_backend.engines.across_nodes.near_patterns.rotations import OPERATORS, PARTING, Rotations
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.written_norms import PASSED_OVER
from onnx_multi_backend.models.contents import Contents

_SOFTMAX = frozenset({"Exp", "ReduceSum", "Div"})
_OVER = PASSED_OVER | {"Cast"}
_REASON = "OpenVINO would compute it as another function, which it nearly is"


def lookalikes_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are computed as they are written; None where there are none."""
    rotary = contents.has(PARTING) and all(contents.has({operator}) for operator in OPERATORS)
    if not (rotary or all(contents.has({operator}) for operator in _SOFTMAX)) or (flat := flat_for(contents)) is None:
        return None
    rotations, walked = Rotations(contents), walked_of(contents)
    found = [dict(_found(nodes, walked.makers, rotations)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}written", "lookalikes_apart", "kept from being recognized", _REASON)


def _found(
    nodes: Sequence[NodeView], makers: Mapping[str, NodeProto], rotations: Rotations
) -> Iterator[tuple[int, int]]:
    """The places of nodes of one graph, and of the inputs to be kept apart."""
    for place, node in enumerate(nodes):
        if node.operator == "ReduceSum" and _loses_axis(node):
            maker = maker_before(node.input[0], makers, _OVER)
            if maker is not None and maker.op_type == "Exp":
                yield place, 0
        elif node.operator == "Mul":
            turned = (i for i, name in enumerate(node.input) if name in makers and makers[name].op_type == "Concat")
            odd = (i for i in turned if rotations.is_odd(node.input[1 - i], makers[node.input[i]], makers))
            if (at := next(odd, None)) is not None:
                yield place, at


def _loses_axis(node: NodeView) -> bool:
    return any(a.name == "keepdims" and not a.i for a in node.proto.attribute)
