# SPDX-License-Identifier: Apache-2.0
"""The sizes of products, windows and reductions."""

from __future__ import annotations

from onnx_multi_backend.adapt.intervals.constant_reductions import reduces_nothing
from onnx_multi_backend.adapt.sizes.known import Known, from_zero, integer
from onnx_multi_backend.adapt.sizes.size import Size, Sizes, broadcast
from onnx_multi_backend.adapt.walked import NodeView

#: What makes other sizes than are asked for of a Resize.
_KEEPING = frozenset({"axes", "keep_aspect_ratio_policy"})


def matmul(known: Known, node: NodeView) -> Sizes | None:
    one, other = (known.read(node, place) for place in (0, 1))
    if not one or not other:
        return None
    batch = broadcast([one[:-2], other[:-2]])
    return (*batch, *(one[-2:-1] if len(one) > 1 else ()), *(other[-1:] if len(other) > 1 else ()))


def gemm(known: Known, node: NodeView) -> Sizes:
    named = {a.name: a.i for a in node.proto.attribute}
    one, other = (known.read(node, place) for place in (0, 1))
    one, other = (sizes if sizes is not None and len(sizes) == 2 else (None, None) for sizes in (one, other))
    return one[1 if named.get("transA") else 0], other[0 if named.get("transB") else -1]


def windows(known: Known, node: NodeView) -> Sizes | None:
    """Of a convolution or pool."""
    data = known.read(node, 0)
    if data is None or len(data) < 2:
        return None
    weights = known.read(node, 1) if node.operator.startswith("Conv") else None
    named = {a.name: a for a in node.proto.attribute}
    lists = {name: named[name].ints[:] for name in ("kernel_shape", "strides", "dilations", "pads") if name in named}
    kernel, count = lists.get("kernel_shape") or (weights or ())[2:], len(data) - 2
    channels = data[1] if not node.operator.startswith("Conv") else weights[0] if weights else None
    strides, dilations = lists.get("strides") or [1] * count, lists.get("dilations") or [1] * count
    pads = lists.get("pads") or [0] * 2 * count
    is_odd = ("auto_pad" in named and named["auto_pad"].s != b"NOTSET") or (
        "ceil_mode" in named and named["ceil_mode"].i
    )
    lengths = {len(kernel), len(strides), len(dilations), len(pads) / 2}
    if is_odd or lengths != {count} or min(strides, default=1) < 1:
        return (data[0], channels, *([None] * count))
    made: list[Size] = []
    for i, (size, window) in enumerate(zip(data[2:], kernel, strict=True)):
        if not isinstance(size, int) or not isinstance(window, int):
            made.append(None)
            continue
        left = size + sum(pads[i::count]) - dilations[i] * (window - 1) - 1
        made.append(left // strides[i] + 1 if left >= 0 else None)
    return (data[0], channels, *made)


def transposed_convolution(known: Known, node: NodeView) -> Sizes | None:
    data = known.read(node, 0)
    return data and (data[0], *([None] * (len(data) - 1)))


def einsum(known: Known, node: NodeView) -> Sizes | None:
    """The sizes of the letters that an equation names for its result."""
    text = next((a.s.decode(errors="replace") for a in node.proto.attribute if a.name == "equation"), "")
    left, arrow, made = text.replace(" ", "").partition("->")
    if not arrow or "." in text:
        return None
    sizes: dict[str, list[Size]] = {}
    for letters, name in zip(left.split(","), node.input, strict=False):
        read = known.sizes.get(name)
        for letter, size in zip(letters, read or [None] * len(letters), strict=False):
            sizes.setdefault(letter, []).append(size)
    return tuple(broadcast([(size,) for size in sizes.get(letter, [None])])[0] for letter in made)


def reduced(known: Known, node: NodeView) -> Sizes | None:
    data, axes = known.read(node, 0), known.axes(node)
    keeps = bool(integer(node.proto, "keepdims", 1))
    if data is None or (axes is None and not keeps):
        return None
    if axes is None:
        return (None,) * len(data)
    if not axes:
        if reduces_nothing(node.proto, ()):
            return data
        axes = tuple(range(len(data)))
    if (at := from_zero(axes, len(data))) is None:
        return None
    return tuple(1 if i in at else size for i, size in enumerate(data) if keeps or i not in at)


def of_extremes(known: Known, node: NodeView) -> Sizes | None:
    """Of the places of the largest or smallest elements."""
    data, axis = known.read(node, 0), integer(node.proto, "axis", 0)
    if data is None or not -len(data) <= axis < len(data):
        return None
    kept = (1,) if integer(node.proto, "keepdims", 1) else ()
    return (*data[: axis % len(data)], *kept, *data[axis % len(data) + 1 :])


def resize(known: Known, node: NodeView) -> Sizes | None:
    data = known.read(node, 0)
    sizes = known.listed_sizes(node, 3) if len(node.input) > 3 and node.input[3] else None
    is_plain = (
        data is not None
        and sizes is not None
        and len(sizes) == len(data)
        and not _KEEPING.intersection(a.name for a in node.proto.attribute)
    )
    return sizes if is_plain else data and (None,) * len(data)
