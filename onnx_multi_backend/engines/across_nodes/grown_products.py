# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a product with a constant that gives it more elements, where it takes both for one operator.

A leaky activation that is written out (``Relu(x) - w * Relu(-x)``) is a PRelu to it, and the product behind a normalization the normalization's
scale. Neither has more elements than what it reads: (1, 4) for (3, 4). Over the larger of a value and itself, which is that value, they are what they
are. Models with open inputs are left as they are: there such an activation is refused in a run, and finding out costs much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import FIRST
from onnx_multi_backend.adapt.walked import Walked, tensor_types, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, has_fixed_inputs, inputs_apart, of_kept_types
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_PRODUCTS = frozenset({"Div", "Mul"})
#: Normalizations, what one is written with, and half of such an activation.
_PARTS = frozenset({"LayerNormalization", "Pow", "RMSNormalization", "Reciprocal", "Relu", "Sqrt"})
#: What may stand between them and the product.
_BETWEEN = _PRODUCTS | {"Cast", "Dropout", "Identity", "Neg"}
#: Operators whose weights tell a size of their result: by which of their own, and how many these have at least. The last one is that along the last
#: axis, another that along the channels.
_TELLING = {"Conv": (0, 3), "ConvTranspose": (1, 3), "LayerNormalization": (-1, 1), "MatMul": (-1, 2)}
_REASON = "OpenVINO would take the product for a part of what is before it, which has fewer elements"


def growth_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such products are kept apart from what is before them; None where there are none."""
    if not contents.has(_PRODUCTS) or not contents.has(_PARTS) or not has_fixed_inputs(contents.model):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    taken = [
        [(i, n, node) for i, node in enumerate(graph.node) for n in _taken_along(node, walked)]
        for graph in walked.graphs
    ]
    declared = tensor_types(walked.graphs) if any(taken) else {}
    found = [
        {
            place: number
            for place, number, node in own
            if not _is_declared_alike(declared.get(node.input[number]), declared.get(node.output[0]))
            and not _is_as_large(node.input[number], walked.fixed.get(node.input[1 - number]), walked)
            and _grows(node.input[number], node.input[1 - number], walked)
        }
        for own in taken
    ]
    if not any(found):
        return None
    graphs = zip(walked.graphs, found, strict=True)
    read = [{place: graph.node[place].input[number] for place, number in own.items()} for graph, own in graphs]
    kept = of_kept_types(contents, flat, read)
    places = [{place: own[place] for place in of} for own, of in zip(found, kept, strict=True)]
    change = "kept apart from what is before it"
    return inputs_apart(flat, places, f"{CAST}grown", "growth_apart", change, _REASON)


def _taken_along(node: NodeProto, walked: Walked) -> Iterator[int]:
    """Which input of a product with a constant OpenVINO may take for a part of such an operator."""
    if node.op_type not in _PRODUCTS or canonical(node.domain) or len(node.input) != 2:
        return
    for i in (0, 1) if node.op_type == "Mul" else (0,):
        tensor = walked.fixed.get(node.input[1 - i])
        is_constant = node.input[1 - i] in walked.fixed and (tensor is None or math.prod(tensor.dims) != 1)
        if is_constant and node.input[i] not in walked.fixed and _comes_of_part(node.input[i], walked):
            yield i


def _comes_of_part(name: str, walked: Walked) -> bool:
    """Whether a value comes of such an operator, or what one is written with, over what may be left out or computed with it."""
    waiting, seen = [name], {name}
    while waiting:
        maker = walked.makers.get(waiting.pop())
        if maker is None or canonical(maker.domain):
            continue
        if maker.op_type in _PARTS or (maker.op_type == "Sub" and _reads_magnitude(maker, walked)):
            return True
        if maker.op_type in _BETWEEN:
            new = {read for read in maker.input if read not in walked.fixed} - seen
            seen |= new
            waiting += new
    return False


def _reads_magnitude(node: NodeProto, walked: Walked) -> bool:
    makers = (walked.makers.get(name) for name in node.input)
    return any(maker is not None and maker.op_type == "Abs" for maker in makers)


def _is_declared_alike(value: TypeProto.Tensor | None, product: TypeProto.Tensor | None) -> bool:
    """Whether a product is declared to have the sizes of the value: inference takes long."""
    if value is None or product is None or not value.HasField("shape"):
        return False
    sizes = value.shape.dim
    return all(size.WhichOneof("value") for size in sizes) and list(sizes) == list(product.shape.dim)


def _is_as_large(name: str, constant: TensorProto | None, walked: Walked) -> bool:
    """Whether the nodes before a value tell that it has several elements wherever a constant has: inference takes long."""
    if constant is None or not constant.data_type:
        return False
    behind = [i for i, size in enumerate(reversed(constant.dims), 1) if size != 1]
    return all(_has_several(name, axis, walked) for axis in behind)


def _has_several(name: str, axis: int, walked: Walked) -> bool:
    """Whether a value has several elements along an axis, counted from the last one, which is 1."""
    waiting, seen = [name], {name}
    while waiting:
        maker = walked.makers.get(waiting.pop())
        if maker is None or canonical(maker.domain):
            continue
        if maker.op_type in ARITHMETIC:
            held = [tensor.dims for read in maker.input if (tensor := walked.fixed.get(read)) is not None]
            if any(len(dims) >= axis and dims[-axis] > 1 for dims in held):
                return True
            new = {read for read in maker.input if read not in walked.fixed} - seen
        elif maker.op_type in _TELLING:
            if _tells_of_several(maker, axis, walked):
                return True
            continue
        elif maker.op_type in FIRST - {"Concat", "Slice", "Split", "Transpose"}:
            new = set(maker.input[:1]) - seen
        else:
            continue
        seen |= new
        waiting += new
    return False


def _tells_of_several(node: NodeProto, axis: int, walked: Walked) -> bool:
    """Whether the weights of a node tell that its result has several elements along an axis, counted from the last one."""
    weights = walked.fixed.get(node.input[1])
    place, least = _TELLING[node.op_type]
    if weights is None or len(weights.dims) < least:
        return False
    return axis == (1 if place == -1 else len(weights.dims) - 1) and weights.dims[place] > 1


def _grows(name: str, constant: str, walked: Walked) -> bool:
    """Whether the product of a value and a constant may have more elements than the value."""
    value, other = walked.types.get(name), walked.types.get(constant)
    tensor = walked.fixed.get(constant)
    if tensor is not None and tensor.data_type:
        sizes: list[int | None] = list(tensor.dims)
    elif other is not None and other.HasField("shape"):
        sizes = [size.dim_value if size.HasField("dim_value") else None for size in other.shape.dim]
    else:
        return True
    if value is None or not value.HasField("shape"):
        return True
    return _has_more(value, sizes)


def _has_more(value: TypeProto.Tensor, sizes: list[int | None]) -> bool:
    own = [size.dim_value if size.HasField("dim_value") else None for size in value.shape.dim]
    missing = len(sizes) - len(own)
    if missing > 0 and any(size != 1 for size in sizes[:missing]):
        return True
    pairs = zip(reversed(own), reversed(sizes), strict=False)
    return any(mine in (1, None) and size != 1 for mine, size in pairs)
