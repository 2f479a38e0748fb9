# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, in ONNX Runtime's built-in provider) makes of an attention with constant keys or values.

Where they are several matrices (of batches or heads), it reads others in their place, in open shapes too. A product over an axis of one element,
which changes no value, keeps the weights apart from the values.
"""

from __future__ import annotations

import math

from onnx import NodeProto

from onnx_multi_backend.adapt.walked import Walked
from onnx_multi_backend.engines.across_nodes.attentions import (
    PRODUCTS,
    before,
    ends,
    walked_with,
    weighted,
    without_fusion,
)
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would read other matrices than these constant ones of an attention"


def constant_keys(contents: Contents) -> Rewritten | None:
    """A copy of the model in which no attention has constant keys or values; None where none has."""
    if (walked := walked_with(contents)) is None:
        return None
    values = weighted(walked)
    found = [
        {
            i: node.input[0]
            for i, node in own
            if node.op_type in PRODUCTS and node.input[0] in values and _reads_them(node, walked)
        }
        for own in ends(walked, values)
    ]
    return without_fusion(walked, found, "constant_keys", _REASON)


def _reads_them(node: NodeProto, walked: Walked) -> bool:
    """Whether a product, or one that its weights come of, reads several constant matrices."""
    products = (maker for maker in before(node.input[:1], walked.makers) if maker.op_type in PRODUCTS)
    return any(_are_several(name, walked) for product in (node, *products) for name in product.input[1:2])


def _are_several(name: str, walked: Walked) -> bool:
    """Whether a value is constant to OpenVINO, and may be more than one matrix."""
    tensor = walked.fixed.get(name)
    if name not in walked.fixed or (tensor is not None and not tensor.data_type):
        return False
    return tensor is None or math.prod(tensor.dims[:-2]) > 1
