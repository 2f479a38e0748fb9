# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO makes of the quantized operators of ONNX Runtime's domain: they are written with Q/DQ nodes.

Measured with OpenVINO 2026.4: half of the results or more are off by one, or wrap around, and those of QLinearAveragePool,
QLinearLeakyRelu and QLinearWhere have nothing to do with the input. Its frontend does not know QGemm and QLinearGlobalAveragePool. The
execution providers leave these operators to the CPU provider. Source: ONNX Runtime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.openvino.quantized_windows import with_whole_windows
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import put_back, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far
from onnx_multi_backend.models.tensors import is_whole

_T = TensorProto
#: The first opset with QuantizeLinear.
_OLDEST = 10
#: Since these opsets Softmax has one axis, and the axes of ReduceMean are an input.
_ONE_AXIS, _AXES_GIVEN = 13, 18
#: Since this opset a scale may be for each place on an axis.
_ALONG_AXIS = 13
_KINDS = (_T.INT8, _T.UINT8)


def written_out(contents: Contents) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model with DequantizeLinear, the operator on floats and QuantizeLinear; the model itself where there is none.

    Returns
    -------
    model : onnx.ModelProto
    changes : tuple of Adaptation
    """
    model = contents.model
    if not any(_is_meant(node) for node in contents.nodes) or expands_too_far(model):
        return model, ()
    flat = inlined(model)
    opset = opset_versions(flat).get("", 1)
    if opset < _OLDEST:
        return model, ()
    copy = ModelProto()
    copy.CopyFrom(flat)
    writing = _Writing(opset)
    writing.graph(copy.graph, {}, {})
    if not writing.places:
        return model, ()
    reason = "OpenVINO computes the quantized operators of ONNX Runtime's domain wrongly"
    changes = tuple(
        Adaptation("quantized_operators", where, "written with Q/DQ nodes", reason) for where in writing.places
    )
    return copy, changes


def _is_meant(node: NodeProto) -> bool:
    return node.domain == DOMAIN and node.op_type in _FORMS


class _Writing:
    """Writes the nodes of a model."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.places: list[str] = []
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._kinds: dict[str, int] = {}
        self._declared: dict[str, TensorShapeProto] = {}
        self._prefix = ""

    def graph(self, graph: GraphProto, constants: Mapping[str, TensorProto], kinds: Mapping[str, int]) -> None:
        """Do so in a graph and its subgraphs."""
        given = {value.name for value in graph.input}
        known = {name: tensor for name, tensor in constants.items() if name not in given}
        known |= {t.name: t for t in graph.initializer if t.name not in given}
        typed = dict(kinds) | {t.name: t.data_type for t in graph.initializer}
        values = (*graph.input, *graph.value_info, *graph.output)
        typed |= {v.name: v.type.tensor_type.elem_type for v in values}
        self._declared |= {v.name: v.type.tensor_type.shape for v in values if v.type.tensor_type.HasField("shape")}
        nodes: list[NodeProto] = []
        for node in graph.node:
            for inner in subgraphs(node):
                self.graph(inner, known, typed)
            if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
                known[node.output[0]] = node.attribute[0].t
                typed[node.output[0]] = node.attribute[0].t.data_type
            elif node.op_type == "QuantizeLinear":
                typed[node.output[0]] = typed.get(node.input[2], 0) if len(node.input) > 2 else _T.UINT8
            self._nodes, self._constants, self._kinds = [], known, typed
            if _is_meant(node) and self._write(node):
                nodes += self._nodes
                self.places.append(f"{DOMAIN}.{node.op_type} {node.name or node.output[0]!r}")
            else:
                nodes.append(node)
        if self.places:
            put_back(graph, nodes)

    def _write(self, node: NodeProto) -> bool:
        operands, scale, zero = _FORMS[node.op_type].places(node)
        kind = next((k for k in map(self._kind, (zero, *(z for *_, z in operands), operands[0][0])) if k in _KINDS), 0)
        if not kind:
            return False
        self._prefix = f"{node.output[0]}{CAST}"
        floats = [self("DequantizeLinear", x, self.scalar(s), *self._zeros(z)) for x, s, z in operands]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        made = _FORMS[node.op_type].write(self, node, floats, attributes)
        if made is None:
            return False
        if scale:
            limits = self._zeros(zero) or [self.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind)))]
            last = "QuantizeLinear", [made, self.scalar(scale), *limits]
        else:  # the result is not quantized
            last, kind = ("Identity", [made]), _T.FLOAT
        self._nodes.append(helper.make_node(*last, [node.output[0]], name=self._name()))
        self._kinds[node.output[0]] = kind
        return True

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self._name()
        self._nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        """A constant tensor."""
        return self("Constant", value=numpy_helper.from_array(value))

    def _name(self) -> str:
        return f"{self._prefix}{len(self._nodes)}"

    def along(self, name: str, scale: str, zero: str, axis: int) -> str | None:
        """A tensor on floats, whose scale may have a value for each place on an axis; None where that cannot be written or told."""
        sizes = self._sizes(scale)
        if sizes in ([], [1]):
            return self("DequantizeLinear", name, self.scalar(scale), *self._zeros(zero))
        if self.opset < _ALONG_AXIS or sizes is None or (zero and self._sizes(zero) != sizes):
            return None
        return self("DequantizeLinear", name, scale, *filter(None, [zero]), axis=axis)

    def _kind(self, name: str) -> int:
        return self._kinds.get(name, 0) if name else 0

    def _sizes(self, name: str) -> list[int] | None:
        """The shape of a scale or a zero point, where it is known."""
        if (tensor := self._constants.get(name)) is not None:
            return list(tensor.dims)
        dims = self._declared[name].dim if name in self._declared else ()
        known = name in self._declared and all(dim.HasField("dim_value") for dim in dims)
        return [dim.dim_value for dim in dims] if known else None

    def spatial_sizes(self, name: str, *, channels_last: bool) -> list[int] | None:
        """The sizes of an image, where all of its sizes are known."""
        sizes = self._sizes(name)
        return None if sizes is None else sizes[1:-1] if channels_last else sizes[2:]

    def _zeros(self, name: str) -> list[str]:
        return [self.scalar(name)] if name else []

    def scalar(self, name: str) -> str:
        """A scale or a zero point as a scalar: of rank 1, it would be taken for those of an axis."""
        tensor = self._constants.get(name)
        if tensor is not None and is_whole(tensor):
            if not tensor.dims:
                return name
            array = numpy_helper.to_array(tensor)
            return self.constant(array.reshape(())) if array.size == 1 else name
        return self("Reshape", name, self.constant(np.zeros(0, np.int64)))


_Operand = tuple[str, str, str]
_Write = Callable[[_Writing, NodeProto, Sequence[str], Mapping[str, Any]], "str | None"]


class _Form:
    """Where an operator's operands, its scale and its zero point are, and how it is written on floats."""

    def __init__(self, places: Callable[[NodeProto], tuple[list[_Operand], str, str]], write: _Write) -> None:
        self.places = places
        self.write = write


def _at(node: NodeProto, index: int) -> str:
    return node.input[index] if index < len(node.input) else ""


def _operands(*starts: int) -> Callable[[NodeProto], tuple[list[_Operand], str, str]]:
    """Operands that begin at these inputs, and the scale and zero point behind the last."""

    def places(node: NodeProto) -> tuple[list[_Operand], str, str]:
        found = [(_at(node, i), _at(node, i + 1), _at(node, i + 2)) for i in starts]
        return found, _at(node, starts[-1] + 3), _at(node, starts[-1] + 4)

    return places


def _concatenated(node: NodeProto) -> tuple[list[_Operand], str, str]:
    return _operands(*range(2, len(node.input), 3))(node)[0], _at(node, 0), _at(node, 1)


def _alike(op_type: str, *dropped: str) -> _Write:
    """The operator of this name with the same attributes."""

    def write(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
        return body(op_type, *floats, **{name: value for name, value in attributes.items() if name not in dropped})

    return write


def _first(node: NodeProto) -> tuple[list[_Operand], str, str]:
    """Of QGemm: the second operand may have a scale for each column, and the result none at all."""
    return _operands(0)(node)[0], _at(node, 7), _at(node, 8)


def _gemm(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    """C is of int32, by the scales of both operands and alpha."""
    name, scale, zero = node.input[3:6]
    weights = body.along(name, scale, zero, axis=0 if attributes.get("transB", 0) else 1)
    if weights is None:
        return None
    if not (bias := _at(node, 6)):
        return body("Gemm", floats[0], weights, **attributes)
    alpha = body.constant(np.array(attributes.get("alpha", 1), np.float32))
    steps = body("Mul", body("Mul", body.scalar(node.input[1]), scale), alpha)
    return body("Gemm", floats[0], weights, body("Mul", body("Cast", bias, to=_T.FLOAT), steps), **attributes)


def _where(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    return body("Where", node.input[0], *floats)


def _pool(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    last = bool(attributes.get("channels_last", 0))
    windows = with_whole_windows(attributes, body.spatial_sizes(node.input[0], channels_last=last))
    if windows is None:
        return None
    if not last:
        return body("AveragePool", *floats, **windows)
    axes = len(windows["kernel_shape"])
    first = body("Transpose", floats[0], perm=[0, axes + 1, *range(1, axes + 1)])
    return body("Transpose", body("AveragePool", first, **windows), perm=[0, *range(2, axes + 2), 1])


def _global_pool(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    return None if attributes.get("channels_last", 0) else body("GlobalAveragePool", *floats)


def _mean(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    if "axes" not in attributes or body.opset < _AXES_GIVEN:
        return body("ReduceMean", *floats, **attributes)
    axes = body.constant(np.array(attributes["axes"], np.int64))
    return body("ReduceMean", *floats, axes, keepdims=attributes.get("keepdims", 1))


def _softmax(body: _Writing, node: NodeProto, floats: Sequence[str], attributes: Mapping[str, Any]) -> str | None:
    """Its attribute `opset` says which Softmax it is."""
    before = attributes.get("opset", 1) < _ONE_AXIS
    axis = attributes.get("axis", 1 if before else -1)
    if before == (body.opset < _ONE_AXIS):
        return body("Softmax", floats[0], axis=axis)
    if not before:
        return None
    rows = body("Softmax", body("Flatten", floats[0], axis=axis), axis=-1)
    return body("Reshape", rows, body("Shape", floats[0]))


_FORMS: Mapping[str, _Form] = {
    "QGemm": _Form(_first, _gemm),
    "QLinearAdd": _Form(_operands(0, 3), _alike("Add")),
    "QLinearAveragePool": _Form(_operands(0), _pool),
    "QLinearConcat": _Form(_concatenated, _alike("Concat")),
    "QLinearGlobalAveragePool": _Form(_operands(0), _global_pool),
    "QLinearLeakyRelu": _Form(_operands(0), _alike("LeakyRelu")),
    "QLinearMul": _Form(_operands(0, 3), _alike("Mul")),
    "QLinearReduceMean": _Form(_operands(0), _mean),
    "QLinearSigmoid": _Form(_operands(0), _alike("Sigmoid")),
    "QLinearSoftmax": _Form(_operands(0), _softmax),
    "QLinearWhere": _Form(_operands(1, 4), _where),
}

#: The operators that are written out.
OPERATORS = frozenset(_FORMS)
