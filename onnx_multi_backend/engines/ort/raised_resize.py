# SPDX-License-Identifier: Apache-2.0
"""What ONNX's version converter forgets of Upsample, and of Resize before opset 11: where pixels lie."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, helper, numpy_helper

from onnx_multi_backend.models.graph_walk import canonical

#: Since this opset Resize says where pixels lie.
RESIZE = 11
#: The last opset with Upsample, whose scales are 1 at least.
_UPSAMPLE = 9


def say_where_pixels_lie(graph: GraphProto, opset: int) -> None:
    """Complete each Resize of a graph that was converted from an opset before 11, in place. Before 10 each was an Upsample.

    Source: ONNX Runtime's ``upsamplebase.h``, as in `adapt.rules.older_resize`.

    Raises
    ------
    ValueError
        Where nearest may both enlarge and shrink an image, which takes two nodes.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants.update((n.output[0], n.attribute[0].t) for n in graph.node if n.op_type == "Constant")
    for node in graph.node:
        if node.op_type != "Resize" or canonical(node.domain):
            continue
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
        if next((a.s for a in node.attribute if a.name == "mode"), b"nearest") != b"nearest":
            continue
        tensor = constants.get(node.input[2])
        scales = None if tensor is None else numpy_helper.to_array(tensor)
        if opset <= _UPSAMPLE:
            scales = np.ones(1)
        if scales is None or ((scales < 1).any() and (scales > 1).any()):
            raise ValueError("it does not say which pixels a Resize of an old opset takes.")
        nearest = "ceil" if (scales < 1).any() else "floor"
        node.attribute.append(helper.make_attribute("nearest_mode", nearest))
