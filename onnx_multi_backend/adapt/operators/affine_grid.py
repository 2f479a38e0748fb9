# SPDX-License-Identifier: Apache-2.0
"""Mending AffineGrid's function body (onnx 1.23): it takes no batch of 1."""

from __future__ import annotations

from onnx import FunctionProto, NodeProto, helper

from onnx_multi_backend.models.graph_walk import nodes_in, put_back

#: What the body calls the lists that hold 0 and 1.
_ZERO, _ONE = "zero_1d", "one_1d"


def with_any_batch(body: FunctionProto) -> None:
    """Have the body take a batch of 1, and hand Range scalars.

    ``r1_ = Squeeze (r1)`` behind ``r1, r2 = Split <axis = 1, num_outputs = 2> (thetaN23)`` removes the batch too where that is 1, and
    ``Range (zero, W, one)`` gets a tensor of one axis, which only some engines take.
    """
    if body.name != "AffineGrid" or not {_ZERO, _ONE} <= {name for node in body.node for name in node.output}:
        return
    nodes = list(nodes_in(body.node))
    along_1 = (n for n in nodes if n.op_type == "Split" and any(a.name == "axis" and a.i == 1 for a in n.attribute))
    rows = {name for node in along_1 for name in node.output}
    for node in nodes:
        if node.op_type == "Squeeze" and len(node.input) == 1 and node.input[0] in rows:
            node.input.append(_ONE)
    put_back(body, [part for node in body.node for part in _with_a_scalar(node)])


def _with_a_scalar(node: NodeProto) -> list[NodeProto]:
    """A Range behind a Squeeze of its end, any other node as it is."""
    if node.op_type != "Range":
        return [node]
    end = f"{node.input[1]}/scalar"
    made = NodeProto()
    made.CopyFrom(node)
    made.input[1] = end
    return [helper.make_node("Squeeze", [node.input[1], _ZERO], [end]), made]
