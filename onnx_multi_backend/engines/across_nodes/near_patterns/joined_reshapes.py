# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a product of a matrix with a transposed and reshaped tensor, whose result is reshaped and transposed.

It leaves out the four around the product, as in an Einsum, whatever shape the second Reshape makes. Between the larger of the product and itself,
which is the product, and that Reshape nothing is recognized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, is_made_by, maker_before, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_PRODUCTS = frozenset({"Gemm", "MatMul"})
_MATRIX = 2
_REASON = "OpenVINO would leave out the Transposes and Reshapes around it, whatever they make"


def matrices_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such products are kept apart from the Reshape behind them; None where there are none."""
    if not all(contents.has({operator}) for operator in ("Reshape", "Transpose")) or not contents.has(_PRODUCTS):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked, sizes = walked_of(contents), sizes_of(contents)

    def is_reshaped(name: str) -> bool:
        reshape = maker_before(name, walked.makers, ("Identity", "Transpose"))
        return (
            reshape is not None
            and reshape.op_type == "Reshape"
            and is_made_by(reshape.input[0], "Transpose", walked.makers)
        )

    def found(nodes: Sequence[NodeView], readers: Mapping[str, Sequence[NodeProto]]) -> dict[int, int]:
        return {
            place: 0
            for place, node in enumerate(nodes)
            if node.operator in _PRODUCTS
            and len(sizes.get(node.output[0]) or (0,) * _MATRIX) == _MATRIX
            and _is_turned(node.output[0], readers)
            and is_reshaped(node.input[1])
        }

    views = zip(walked.views, walked.readers, strict=True)
    places = [found(nodes, readers) for nodes, readers in views]
    return outputs_apart(flat, places, f"{CAST}matrix", "matrices_apart", _REASON)


def _is_turned(name: str, readers: Mapping[str, Sequence[NodeProto]]) -> bool:
    """Whether a value is reshaped, and what comes of that transposed."""
    reshaped = (node.output[0] for node in readers.get(name, ()) if node.op_type == "Reshape")
    return any(node.op_type == "Transpose" for made in reshaped for node in readers.get(made, ()))
