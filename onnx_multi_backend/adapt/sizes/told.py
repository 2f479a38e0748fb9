# SPDX-License-Identifier: Apache-2.0
"""The sizes of a model's values, as far as its inputs and its nodes tell. onnx's inference takes ten times as long, and believes what is declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from onnx import AttributeProto, NodeProto

from onnx_multi_backend.adapt.intervals.constant_reductions import axes_given, reduces_nothing
from onnx_multi_backend.adapt.single_node import kept_beside
from onnx_multi_backend.adapt.sizes.numbers import FOLLOWED, Numbers, whole
from onnx_multi_backend.adapt.sizes.size import OPEN, Size, Sizes, broadcast, held, same, total
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.plausible import MOST_AXES

#: What has the sizes of what it reads first.
_ALIKE = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh CumSum DequantizeLinear Dropout
    DynamicQuantizeLinear Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Log LogSoftmax LpNormalization Mish Neg Not PRelu QuantizeLinear QuickGelu RMSNormalization Reciprocal Relu ReverseSequence Round
    ScatterElements ScatterND Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu""".split()
)
#: What has as many axes as what it reads first.
FIRST = _ALIKE - {"DynamicQuantizeLinear", "PRelu", "RMSNormalization", "ScatterElements", "ScatterND"} | frozenset(
    """AveragePool Concat Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool MaxPool Pad Resize Slice SpaceToDepth Split Tile TopK
    Transpose Upsample""".split()
)
#: Of these all outputs have as many axes.
_SEVERAL = frozenset({"Dropout", "MaxPool", "Split", "TopK"})
_ELEMENTWISE = frozenset(
    """Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where
    Xor""".split()
)
#: What makes values of these numbers of axes.
_OF_OUTPUTS: Mapping[str, tuple[int, ...]] = {"GRU": (4, 3), "LSTM": (4, 3, 3), "RNN": (4, 3)}
#: What makes other sizes than are asked for of a Resize.
_KEEPING = frozenset({"axes", "keep_aspect_ratio_policy"})
#: Beyond which a Slice goes to the end.
_TO_THE_END = 2**31 - 1


def sizes_of(contents: Contents) -> Mapping[str, Sizes]:
    """The sizes of each value of which the number of axes is known; those that a run alone tells are open. Of a model without local functions."""
    kept = kept_beside(contents.model)
    if "sizes" not in kept:
        kept["sizes"] = _sizes(walked_of(contents))
    found: Mapping[str, Sizes] = kept["sizes"]
    return found


def _sizes(walked: Walked) -> dict[str, Sizes]:
    found = _Told(walked)
    for graph, nodes in zip(reversed(walked.graphs), reversed(walked.views), strict=True):  # the outer ones first
        found.sizes.update((tensor.name, tuple(tensor.dims)) for tensor in graph.initializer)
        if graph is walked.flat.graph:  # a default may be of other sizes
            for value in graph.input:
                found.sizes.pop(value.name, None)
            found.sizes.update(found.given)
        for node in nodes:
            if node.operator and node.output:
                found.learn(node)
        for name in walked.several:
            found.sizes.pop(name, None)
    return found.sizes


class _Told:
    """Follows sizes from node to node, and the integers that are computed of them."""

    def __init__(self, walked: Walked) -> None:
        self._walked = walked
        values = ((value.name, value.type.tensor_type) for value in walked.flat.graph.input)
        self.given: dict[str, Sizes] = {
            name: tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else OPEN for dim in kind.shape.dim
            )
            for name, kind in values
            if kind.HasField("shape")
        }
        self.sizes: dict[str, Sizes] = dict(self.given)
        inputs = {value.name for graph in walked.graphs for value in graph.input}
        self._unknown = inputs | walked.several
        self.numbers = Numbers(walked, self._unknown)

    def _read(self, node: NodeView, place: int) -> Sizes | None:
        """The sizes of what a node reads."""
        return self.sizes.get(node.input[place]) if place < len(node.input) else None

    def learn(self, node: NodeView) -> None:
        """Tell what a node makes."""
        operator, sizes = node.operator, self.sizes
        if operator in _ALIKE:
            made = self._read(node, 0)
        else:
            rule = _RULES.get(operator)
            made = rule(self, node) if rule is not None else self._by_kind(node)
        if made is not None:
            if operator in _SEVERAL:
                sizes.update(dict.fromkeys(node.output, made))
            else:
                sizes[node.output[0]] = made
            if operator == "DynamicQuantizeLinear":  # its scale and zero point are numbers
                sizes.update(dict.fromkeys(node.output[1:], ()))
        may_be_followed = operator in FOLLOWED and len(node.output) == 1 and node.output[0] not in self._unknown
        if may_be_followed and made is not None and len(made) < 2:
            self.numbers.learn(node, sizes)

    def _by_kind(self, node: NodeView) -> Sizes | None:
        operator = node.operator
        if operator in FIRST:
            first = self._read(node, 0)
            return None if first is None else (None,) * len(first)
        if operator in _ELEMENTWISE:
            read = [self.sizes.get(name) for name in node.input if name]
            known = [sizes for sizes in read if sizes is not None]
            is_plain = len(known) == len(read) and not any(a.name == "axis" for a in node.proto.attribute)
            return broadcast(known) if known and is_plain else None
        if operator in _OF_OUTPUTS:
            self.sizes.update(
                (name, (None,) * rank) for name, rank in zip(node.output, _OF_OUTPUTS[operator], strict=False)
            )
            return (None,) * _OF_OUTPUTS[operator][0]
        return self._reduced(node) if operator.startswith("Reduce") else None

    def constant(self, node: NodeView) -> Sizes | None:
        tensor = self._walked.fixed.get(node.output[0])
        return tuple(tensor.dims) if tensor is not None and tensor.data_type else None

    def shape(self, node: NodeView) -> Sizes:
        given = self._read(node, 0)
        if given is None:
            return (None,)
        named = {a.name: a.i for a in node.proto.attribute}
        return (len(given[named.get("start", 0) : named.get("end", len(given))]),)

    def matmul(self, node: NodeView) -> Sizes | None:
        one, other = (self._read(node, place) for place in (0, 1))
        if not one or not other:
            return None
        batch = broadcast([one[:-2], other[:-2]])
        return (*batch, *(one[-2:-1] if len(one) > 1 else ()), *(other[-1:] if len(other) > 1 else ()))

    def gemm(self, node: NodeView) -> Sizes:
        named = {a.name: a.i for a in node.proto.attribute}
        one, other = (self._read(node, place) for place in (0, 1))
        one, other = (sizes if sizes is not None and len(sizes) == 2 else (None, None) for sizes in (one, other))
        return one[1 if named.get("transA") else 0], other[0 if named.get("transB") else -1]

    def windows(self, node: NodeView) -> Sizes | None:
        """Of a convolution or pool."""
        data = self._read(node, 0)
        if data is None or len(data) < 2:
            return None
        weights = self._read(node, 1) if node.operator.startswith("Conv") else None
        named = {a.name: a for a in node.proto.attribute}
        lists = {
            name: named[name].ints[:] for name in ("kernel_shape", "strides", "dilations", "pads") if name in named
        }
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

    def transposed_convolution(self, node: NodeView) -> Sizes | None:
        data = self._read(node, 0)
        return data and (data[0], *([None] * (len(data) - 1)))

    def gather(self, node: NodeView) -> Sizes | None:
        data, places = (self._read(node, place) for place in (0, 1))
        axis = _integer(node.proto, "axis", 0)
        if data is None or places is None or not -len(data) <= axis < len(data):
            return None
        axis %= len(data)
        return data[:axis] + places + data[axis + 1 :]

    def elements(self, node: NodeView) -> Sizes | None:
        return self._read(node, 1)

    def slices(self, node: NodeView) -> Sizes | None:
        data, places = (self._read(node, place) for place in (0, 1))
        batch = _integer(node.proto, "batch_dims", 0)
        if data is None or not places or not isinstance(places[-1], int) or not 0 <= batch + places[-1] <= len(data):
            return None
        return (*places[:-1], *data[batch + places[-1] :])

    def of_extremes(self, node: NodeView) -> Sizes | None:
        """Of the places of the largest or smallest elements."""
        data, axis = self._read(node, 0), _integer(node.proto, "axis", 0)
        if data is None or not -len(data) <= axis < len(data):
            return None
        kept = (1,) if _integer(node.proto, "keepdims", 1) else ()
        return (*data[: axis % len(data)], *kept, *data[axis % len(data) + 1 :])

    def concat(self, node: NodeView) -> Sizes | None:
        read = [self.sizes.get(name) for name in node.input]
        known = [sizes for sizes in read if sizes is not None]
        if not known:
            return None
        axis, rank = _integer(node.proto, "axis", MOST_AXES), len(known[0])  # of old opsets it has a default
        if len(known) < len(read) or any(len(sizes) != rank for sizes in known) or not -rank <= axis < rank:
            return (None,) * rank
        return tuple(
            total(sizes) if i == axis % rank else same(sizes) for i, sizes in enumerate(zip(*known, strict=True))
        )

    def transpose(self, node: NodeView) -> Sizes | None:
        data = self._read(node, 0)
        order = next((a.ints[:] for a in node.proto.attribute if a.name == "perm"), None)
        if data is None or order is None:
            return data and data[::-1]
        return tuple(data[i] for i in order) if sorted(order) == list(range(len(data))) else None

    def reshape(self, node: NodeView) -> Sizes | None:
        wanted = self._list(node, 1)
        if wanted is None:
            return None
        data, keeps_zero = self._read(node, 0), bool(_integer(node.proto, "allowzero", 0))
        made = [
            size if size != 0 or keeps_zero else data[i] if data is not None and i < len(data) else None
            for i, size in enumerate(wanted)
        ]
        left = [i for i, size in enumerate(made) if size == -1]
        if left:
            others = [size for i, size in enumerate(made) if i != left[0]]
            made[left[0]] = _rest(data, others) if len(left) == 1 else None
        return tuple(made)

    def expand(self, node: NodeView) -> Sizes | None:
        data, wanted = self._read(node, 0), self._sizes(node, 1)
        return None if data is None or wanted is None else broadcast([data, wanted])

    def flattened(self, node: NodeView) -> Sizes:
        data, axis = self._read(node, 0), _integer(node.proto, "axis", 1)
        if data is None or not -len(data) <= axis <= len(data):
            return (None, None)
        axis += len(data) if axis < 0 else 0
        return _product(data[:axis]), _product(data[axis:])

    def tiled(self, node: NodeView) -> Sizes | None:
        data, times = self._read(node, 0), self._sizes(node, 1)
        if data is None or times is None or len(times) != len(data):
            return data and (None,) * len(data)
        return tuple(map(_times, data, times))

    def resized(self, node: NodeView) -> Sizes | None:
        data = self._read(node, 0)
        sizes = self._sizes(node, 3) if len(node.input) > 3 and node.input[3] else None
        is_plain = (
            data is not None
            and sizes is not None
            and len(sizes) == len(data)
            and not _KEEPING.intersection(a.name for a in node.proto.attribute)
        )
        return sizes if is_plain else data and (None,) * len(data)

    def filled(self, node: NodeView) -> Sizes | None:
        return self._sizes(node, 0)

    def _list(self, node: NodeView, place: int) -> Sizes | None:
        """The numbers of the list that a node reads, or as many that are not known."""
        if place >= len(node.input):
            return None
        numbers = self.numbers.of(node.input[place])
        if numbers is not None:
            return numbers
        length = self.sizes.get(node.input[place], ())
        is_known = len(length) == 1 and isinstance(length[0], int) and 0 <= length[0] <= MOST_AXES
        return (None,) * length[0] if is_known and isinstance(length[0], int) else None

    def _sizes(self, node: NodeView, place: int) -> Sizes | None:
        """The same where they are sizes."""
        listed = self._list(node, place)
        return listed and tuple(None if isinstance(size, int) and size < 0 else size for size in listed)

    def inserted(self, node: NodeView) -> Sizes | None:
        data, axes = self._read(node, 0), self._axes(node)
        if data is None or axes is None:
            return None
        rank = len(data) + len(axes)
        if not all(-rank <= axis < rank for axis in axes) or len({axis % rank for axis in axes}) != len(axes):
            return None
        left, at = iter(data), {axis % rank for axis in axes}
        return tuple(1 if i in at else next(left) for i in range(rank))

    def squeezed(self, node: NodeView) -> Sizes | None:
        data, axes = self._read(node, 0), self._axes(node)
        if data is None or axes is None:
            return None
        if not axes:  # every axis of one element
            return tuple(size for size in data if size != 1) if all(isinstance(size, int) for size in data) else None
        if not all(-len(data) <= axis < len(data) for axis in axes):
            return None
        at = {axis % len(data) for axis in axes}
        return tuple(size for i, size in enumerate(data) if i not in at)

    def _reduced(self, node: NodeView) -> Sizes | None:
        data, axes = self._read(node, 0), self._axes(node)
        keeps = bool(_integer(node.proto, "keepdims", 1))
        if data is None or (axes is None and not keeps):
            return None
        if axes is None:
            return (None,) * len(data)
        if not axes:
            if reduces_nothing(node.proto, ()):
                return data
            axes = tuple(range(len(data)))
        if not all(-len(data) <= axis < len(data) for axis in axes):
            return None
        at = {axis % len(data) for axis in axes}
        return tuple(1 if i in at else size for i, size in enumerate(data) if keeps or i not in at)

    def _axes(self, node: NodeView) -> tuple[int, ...] | None:
        """The axes that a node names; none where it names none."""
        if len(node.input) < 2 or not node.input[1]:
            return axes_given(node.proto, {})
        return whole(self.numbers.of(node.input[1]))

    def sliced(self, node: NodeView) -> Sizes | None:
        data = self._read(node, 0)
        if data is None:
            return None
        made = list(data)
        for axis, bounds in self._slices(node, len(data)):
            if axis is None:
                return (None,) * len(data)
            size = data[axis]
            goes_to_the_end = (
                bounds is not None
                and (bounds.start, bounds.step) == (0, 1)
                and isinstance(bounds.stop, int)
                and bounds.stop >= _TO_THE_END
            )
            if bounds is not None and OPEN in (bounds.start, bounds.stop):
                made[axis] = OPEN if size else size
            elif isinstance(size, int) and bounds is not None:
                made[axis] = len(range(size)[bounds])
            elif not goes_to_the_end:
                made[axis] = None
        return tuple(made)

    def _slices(self, node: NodeView, rank: int) -> list[tuple[int | None, slice | None]]:
        """The axes that a Slice cuts, None for one that is not known, and where it cuts them."""
        attributes = {a.name: a.ints[:] for a in node.proto.attribute}
        read = dict(zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False))
        given = {
            name: self.numbers.of(read[name]) if read.get(name) else attributes.get(name)
            for name in ("starts", "ends", "axes", "steps")
        }
        axes, starts = given["axes"], given["starts"]
        if axes is None and (read.get("axes") or starts is None):
            return [(None, None)]
        axes = list(range(len(starts or ()))) if axes is None else axes
        found: list[tuple[int | None, slice | None]] = []
        for i, axis in enumerate(axes):
            if not isinstance(axis, int) or not -rank <= axis < rank:
                return [(None, None)]
            bounds = [
                numbers[i] if (numbers := given[name]) is not None and i < len(numbers) else None
                for name in ("starts", "ends", "steps")
            ]
            step = bounds[2] if given["steps"] is not None else None if read.get("steps") else 1
            start, end = bounds[:2]
            is_known = None not in (start, end) and isinstance(step, int) and step > 0  # engines differ in others
            found.append((axis % rank, slice(start, end, step) if is_known else None))
        return found

    def split(self, node: NodeView) -> Sizes | None:
        data, axis = self._read(node, 0), _integer(node.proto, "axis", 0)
        if data is None or not -len(data) <= axis < len(data):
            return None
        return tuple(None if i == axis % len(data) else size for i, size in enumerate(data))

    def einsum(self, node: NodeView) -> Sizes | None:
        """The sizes of the letters that an equation names for its result."""
        text = next((a.s.decode(errors="replace") for a in node.proto.attribute if a.name == "equation"), "")
        left, arrow, made = text.replace(" ", "").partition("->")
        if not arrow or "." in text:
            return None
        sizes: dict[str, list[Size]] = {}
        for letters, name in zip(left.split(","), node.input, strict=False):
            read = self.sizes.get(name)
            for letter, size in zip(letters, read or [None] * len(letters), strict=False):
                sizes.setdefault(letter, []).append(size)
        return tuple(broadcast([(size,) for size in sizes.get(letter, [None])])[0] for letter in made)

    def range(self, node: NodeView) -> Sizes:
        read = [self.numbers.of(name) for name in node.input]
        bounds = [numbers[0] if numbers is not None and len(numbers) == 1 else None for numbers in read]
        if len(bounds) != 3 or None in bounds:
            return (None,)
        if OPEN in bounds:
            return (OPEN,)
        start, end, step = (bound for bound in bounds if isinstance(bound, int))
        return (held(max(-((start - end) // step), 0)) if step else None,)


def _rest(data: Sizes | None, others: Sequence[Size]) -> Size:
    """The size that is left to a Reshape: open where more of its data's sizes are than of the others, each of which stands for one of them."""
    if data is None or not all(data) or None in others:
        return None
    if data.count(OPEN) != others.count(OPEN):
        return OPEN if data.count(OPEN) > others.count(OPEN) else None
    part = math.prod(size for size in others if isinstance(size, int))
    return None if OPEN in data or not part else held(math.prod(size for size in data if isinstance(size, int)) // part)


def _product(sizes: Sizes) -> Size:
    made: Size = 1
    for size in sizes:
        made = _times(made, size)
    return made


def _times(one: Size, other: Size) -> Size:
    """The product of two sizes."""
    if isinstance(one, int) and isinstance(other, int):
        return held(one * other)
    return None if None in (one, other) or 0 in (one, other) else OPEN


def _integer(node: NodeProto, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name and a.type == AttributeProto.INT), default)


_RULES: Mapping[str, Callable[[_Told, NodeView], Sizes | None]] = {
    "ArgMax": _Told.of_extremes,
    "ArgMin": _Told.of_extremes,
    "Concat": _Told.concat,
    "Constant": _Told.constant,
    "ConstantOfShape": _Told.filled,
    "AveragePool": _Told.windows,
    "Conv": _Told.windows,
    "ConvInteger": _Told.windows,
    "ConvTranspose": _Told.transposed_convolution,
    "Einsum": _Told.einsum,
    "Expand": _Told.expand,
    "Flatten": _Told.flattened,
    "Gather": _Told.gather,
    "GatherElements": _Told.elements,
    "GatherND": _Told.slices,
    "Gemm": _Told.gemm,
    "MatMul": _Told.matmul,
    "MatMulInteger": _Told.matmul,
    "MaxPool": _Told.windows,
    "Range": _Told.range,
    "Resize": _Told.resized,
    "Reshape": _Told.reshape,
    "Shape": _Told.shape,
    "Size": lambda told, node: (),
    "Slice": _Told.sliced,
    "Split": _Told.split,
    "Squeeze": _Told.squeezed,
    "Tile": _Told.tiled,
    "Transpose": _Told.transpose,
    "Unsqueeze": _Told.inserted,
}
