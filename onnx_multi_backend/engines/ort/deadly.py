# SPDX-License-Identifier: Apache-2.0
"""Nodes that end the process of ONNX Runtime: by their constants, or by their mere presence where they may not be rewritten.

Seen with ONNX Runtime 1.24, 1.31 and 1.32: LayerNormalization and DFT dereference an input that is counted and named "",
Loop and Split an output.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt.walked import tensor_types, walked_of
from onnx_multi_backend.engines.deadly import (
    Deadly,
    empty_blocks,
    grid_of_nothing,
    negative_batch,
    no_stride,
    overflowing_quotient,
    quotient_by_zero,
    range_without_end,
    unnamed_operand,
    vast_block,
)
from onnx_multi_backend.engines.ort.openvino_ep.outer_reads import loop_in_branch, outer_reads
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, constants_of
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import is_whole


def no_interval(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """RandomUniform between limits that are NaN, or the wrong way round."""
    given = {a.name: a.f for a in node.attribute}
    return None if given.get("low", 0.0) <= given.get("high", 1.0) else "its low is not at most its high"


def no_spread(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """RandomNormal with a standard deviation of 0, below, or NaN."""
    scale = next((a.f for a in node.attribute if a.name == "scale"), 1.0)
    return None if scale > 0 else "its scale is not above 0"


_ALWAYS: Mapping[str, tuple[Deadly, ...]] = {
    "GatherND": (negative_batch,),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), (unnamed_operand,)),
}
#: By operator, what constants and attributes tell; constants are computed while a session is built.
FOLDED: Mapping[str, tuple[Deadly, ...]] = {
    **_ALWAYS,
    "Div": (overflowing_quotient,),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), (no_interval,)),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), (no_spread,)),
}
#: Of malformed constants, which newer releases refuse in words.
_MALFORMED: Mapping[str, tuple[Deadly, ...]] = {"AffineGrid": (grid_of_nothing,)}
#: Newer releases compute Mod of the smallest integer by -1, and refuse a block that is too large in words.
FOLDED_BEFORE_1_32: Mapping[str, tuple[Deadly, ...]] = {
    **FOLDED,
    **_MALFORMED,
    "Mod": (overflowing_quotient,),
    "DepthToSpace": (vast_block,),
}
#: Newer releases refuse a division by zero in words.
FOLDED_BEFORE_1_31: Mapping[str, tuple[Deadly, ...]] = {
    **_ALWAYS,
    **_MALFORMED,
    "DepthToSpace": (vast_block,),
    **dict.fromkeys(("Div", "Mod"), (overflowing_quotient, quotient_by_zero)),
}
#: Of any release: what is asked first, since it takes a while to ask for the release.
EVER: Mapping[str, tuple[Deadly, ...]] = {**FOLDED, **FOLDED_BEFORE_1_31}

#: Of the OpenVINO execution provider.
OF_OPENVINO: Mapping[str, tuple[Deadly, ...]] = {
    "Range": (range_without_end,),
    "Col2Im": (empty_blocks,),
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"), (no_stride,)),
}
#: Of the one that ONNX Runtime was built with until 1.24.
OF_OPENVINO_BEFORE_1_31: Mapping[str, tuple[Deadly, ...]] = {"If": (loop_in_branch,), "Loop": (outer_reads,)}

#: The input that is dereferenced where the node has as many, by operator: LayerNormalization's bias, DFT's axis.
_READ = {"LayerNormalization": 2, "DFT": 2}

_UNPOOLING = ("MaxUnpool",)
#: By operator, the place of its weights.
_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3}

#: Operators that write each output, named or not.
_WRITE_ALL = frozenset({"Loop", "Split"})


def folded() -> Mapping[str, tuple[Deadly, ...]]:
    """What ends the process of the installed release, by operator."""
    if applies({"onnxruntime": "<1.31"}):
        return FOLDED_BEFORE_1_31
    return FOLDED_BEFORE_1_32 if applies({"onnxruntime": "<1.32"}) else FOLDED


def flat_indices(contents: Contents) -> list[tuple[NodeProto, str]]:
    """MaxUnpool of indices with fewer than two axes, or of a graph input that declares none, where the shape of the result is not given.

    Inferring that reads the second axis. Newer releases say so in words.
    """
    if not contents.has(_UNPOOLING) or not applies({"onnxruntime": "<1.28"}):
        return []
    graph = contents.model.graph
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in graph.value_info
        if value.type.tensor_type.HasField("shape")
    }
    ranks.update((value.name, len(value.type.tensor_type.shape.dim)) for value in graph.input)
    ranks.update((tensor.name, len(tensor.dims)) for tensor in graph.initializer)
    nodes = [
        node
        for node in contents.of(*_UNPOOLING)
        if not canonical(node.domain) and len(list(filter(None, node.input))) == 2
    ]
    return [(node, "its indices have fewer than two known axes") for node in nodes if ranks.get(node.input[1], 2) < 2]


def short_frames(contents: Contents) -> list[tuple[NodeProto, str]]:
    """STFT of frames of no length, by a constant: those of the main graph alone, since a branch may not be taken."""
    if not contents.has({"STFT"}):
        return []
    graph = contents.model.graph
    constants = constants_of(graph)

    def has_no_length(node: NodeProto) -> bool:
        window, length = (constants.get(node.input[i]) if len(node.input) > i else None for i in (2, 3))
        if len(node.input) > 2 and node.input[2]:
            return window is not None and 0 in window.dims
        return length is not None and is_whole(length) and not numpy_helper.to_array(length).any()

    nodes = [node for node in graph.node if node.op_type == "STFT" and not canonical(node.domain)]
    return [(node, "its frames have no length") for node in nodes if has_no_length(node)]


def too_many_parts(contents: Contents) -> list[tuple[NodeProto, str]]:
    """Split into more outputs than `num_outputs`, of a known size. Older releases count the outputs."""

    def has_more(node: NodeProto) -> bool:
        return any(a.name == "num_outputs" and a.i < len(node.output) for a in node.attribute)

    nodes = [node for node in contents.of("Split") if not canonical(node.domain) and has_more(node)]
    applied = nodes and applies({"onnxruntime": ">=1.31"})
    return [(node, "it has more outputs than num_outputs") for node in nodes] if applied else []


def short_images(contents: Contents) -> list[tuple[NodeProto, str]]:
    """Convolutions of images with fewer axes than their weights, or transposed with more. Newer releases say so in words."""
    nodes = [node for node in contents.of(*_WEIGHTS) if not canonical(node.domain)]
    if not nodes or not applies({"onnxruntime": "<1.28"}):
        return []
    graphs, several = walked_of(contents).typed_graphs, walked_of(contents).several
    ranks = {name: len(t.shape.dim) for name, t in tensor_types(graphs).items() if t.HasField("shape")}
    ranks.update((name, len(t.dims)) for graph in graphs for name, t in constants_of(graph).items())
    ranks = {name: rank for name, rank in ranks.items() if name not in several}

    def why(node: NodeProto) -> str | None:
        place = _WEIGHTS[node.op_type]
        if len(node.input) <= place:
            return None
        image, weights = ranks.get(node.input[0]), ranks.get(node.input[place])
        if image is None or weights is None:
            return None
        if image > weights and node.op_type == "ConvTranspose":
            return "its input has more axes than its weights"
        return "its input has fewer axes than its weights" if image < weights else None

    return [(node, words) for node in nodes if (words := why(node)) is not None]


def why_deadly(model: ModelProto) -> str | None:
    """Why ONNX Runtime must not get a model as it is; None: it may."""
    if not any(node.op_type in _READ or node.op_type in _WRITE_ALL for node in all_nodes(model)):
        return None
    return next((words for node in all_nodes(inlined(model)) if (words := _words(node)) is not None), None)


def _words(node: NodeProto) -> str | None:
    if node.op_type in _WRITE_ALL and not canonical(node.domain) and "" in node.output:
        return (
            f'{node.op_type} {node.name!r} names an output "", which ends ONNX Runtime\'s process. Give it a name, or prepare '
            f"with {option_words.given('adapt', True)}"
        )
    index = _READ.get(node.op_type)
    if index is None or canonical(node.domain) or len(node.input) <= index or node.input[index]:
        return None
    return (
        f'{node.op_type} {node.name!r} names its last input "", which ends ONNX Runtime\'s process. Leave the input out, or '
        f"prepare with {option_words.given('adapt', True)}"
    )
