# SPDX-License-Identifier: Apache-2.0
"""The variance in ONNX's function bodies (LayerNormalization, GroupNormalization, MeanVarianceNormalization), computed without cancellation.

They subtract the square of the mean from the mean of the squares. Of float32 numbers whose mean is a thousand times their deviation no
digit of that is left; the mean of the squared deviations is the same number, and keeps all.
"""

from __future__ import annotations

from onnx import FunctionProto, NodeProto, helper, numpy_helper

from onnx_multi_backend.models.graph_walk import put_back


def with_deviations(body: FunctionProto) -> None:
    """Have a body square deviations from the mean, in place."""
    makers = {name: node for node in body.node for name in node.output}
    for variance in [node for node in body.node if node.op_type == "Sub"]:
        found = _parts(variance, makers)
        if found is None:
            continue
        squares, x, mean = found
        places = {name: i for i, node in enumerate(body.node) for name in node.output}
        if places[mean] > places[squares.output[0]]:
            continue
        deviation = f"{squares.output[0]}/deviation"
        rest = list(body.node)
        rest[places[variance.output[0]]] = helper.make_node("Identity", variance.input[:1], variance.output)
        at = places[squares.output[0]]
        rest[at : at + 1] = [
            helper.make_node("Sub", [x, mean], [deviation]),
            helper.make_node("Mul", [deviation, deviation], squares.output),
        ]
        put_back(body, rest)
        makers = {name: node for node in body.node for name in node.output}


def _parts(variance: NodeProto, makers: dict[str, NodeProto]) -> tuple[NodeProto, str, str] | None:
    """The node that squares, what it squares, and the mean of that; None where the node is no such difference."""
    of_squares, of_mean = (makers.get(name) for name in variance.input)
    if of_squares is None or of_mean is None or of_squares.op_type != "ReduceMean":
        return None
    squares = makers.get(of_squares.input[0])
    mean = _squared(of_mean, makers)
    x = _squared(squares, makers) if squares is not None else None
    reduced = makers.get(mean) if mean is not None else None
    if squares is None or x is None or mean is None or reduced is None:
        return None
    alike = reduced.op_type == "ReduceMean" and reduced.input[0] == x and reduced.input[1:] == of_squares.input[1:]
    return (squares, x, mean) if alike and reduced.attribute == of_squares.attribute else None


def _squared(node: NodeProto, makers: dict[str, NodeProto]) -> str | None:
    """What a node squares."""
    x = str(node.input[0]) if node.input else None
    if node.op_type == "Mul":
        return x if node.input[0] == node.input[1] else None
    exponent = makers.get(node.input[1]) if node.op_type == "Pow" else None
    if exponent is None or exponent.op_type != "Constant" or not exponent.attribute[0].HasField("t"):
        return None
    return x if numpy_helper.to_array(exponent.attribute[0].t).tolist() == 2 else None
