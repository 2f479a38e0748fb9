# SPDX-License-Identifier: Apache-2.0
"""Which compiled models come back from OpenVINO's export as they were.

The CPU plugin exports the graph after its own rewriting, and what the rewriting noted on a layer is not always written: with
2026.4.1 an imported recurrent layer mixes up its axes and a rotary embedding its layout, without a word. So a model is
kept only if all its layers are of kinds that were seen to come back: in the cases of ONNX's suite, in PP-OCRv4, and in
models made for the others (int8, fused activations, compressed weights), each to the bit. A layer that holds layers of its own
is not looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx_multi_backend.host.applies import When, applies

_KINDS = frozenset(
    """
    Broadcast Col2Im Concatenation Const Convert Convolution CumSum DFT Deconvolution DepthToSpace
    Eltwise FakeQuantize FullyConnected Gather GatherElements GatherND GridSample Identity Input
    Interpolate Lrn MVN MatMul Math NonMaxSuppression NonZero NormalizeL2 OneHot Output Pad Pooling RMS
    ROIAlign RandomUniform Range Reduce Reference Reorder Reshape ReverseSequence ScatterElementsUpdate
    ScatterNDUpdate ShapeOf Softmax SpaceToDepth Split StridedSlice Subgraph Tile TopK Transpose Unique
    """.split()
)

#: Where what was seen: kinds of layers by the CPU plugin's names. On a release that nobody has looked at nothing is kept.
PROVEN: tuple[tuple[When, frozenset[str]], ...] = (({"openvino": ">=2026.4,<2027"}, _KINDS),)


def layers(compiled: Any) -> Iterator[tuple[Any, str]]:
    """Each layer of a compiled model, and its kind."""
    for layer in compiled.get_runtime_model().get_ops():
        kind = layer.get_rt_info()["layerType"]
        yield layer, str(kind.value if hasattr(kind, "value") else kind)


def unproven(compiled: Any) -> list[str]:
    """The kinds of layers that may not come back as they were."""
    proven = frozenset[str]().union(*(kinds for when, kinds in PROVEN if applies(when)))
    return sorted({kind for _, kind in layers(compiled)} - proven)
