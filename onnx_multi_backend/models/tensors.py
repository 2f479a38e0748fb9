# SPDX-License-Identifier: Apache-2.0
"""What flows in and out of a model: ONNX types, numpy dtypes, shapes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.errors import InvalidModelError

#: Integers of which an engine with `Engine.narrows` keeps what int32 holds.
WIDE = frozenset({TensorProto.INT64, TensorProto.UINT64, TensorProto.UINT32})

#: Types that numpy has no dtype for (ml_dtypes supplies one), mapped to the next wider type that numpy and every
#: engine know and that holds each of their values exactly.
WIDER: dict[int, int] = {
    TensorProto.BFLOAT16: TensorProto.FLOAT,
    TensorProto.FLOAT8E4M3FN: TensorProto.FLOAT,
    TensorProto.FLOAT8E4M3FNUZ: TensorProto.FLOAT,
    TensorProto.FLOAT8E5M2: TensorProto.FLOAT,
    TensorProto.FLOAT8E5M2FNUZ: TensorProto.FLOAT,
    TensorProto.FLOAT8E8M0: TensorProto.FLOAT,
    TensorProto.FLOAT4E2M1: TensorProto.FLOAT,
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.INT2: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
    TensorProto.UINT2: TensorProto.UINT8,
}

#: Bits of one element, for the types that are stored packed.
PACKED_BITS: dict[int, int] = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
}

#: The attributes with which a node Constant writes numbers down, and their dtypes.
_NUMBERS = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}

#: The dtype of string tensors.
OBJECT = np.dtype(object)

_KNOWN = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a model.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype or None
        The element's dtype (``ml_dtypes``' for the types that numpy lacks, ``object`` for strings); for sequences and
        optionals the dtype of the tensors inside; None for maps.
    shape : tuple of (int, str or None), or None
        One entry a dimension: its size, its symbolic name, or None where nothing is known. None: the rank is unknown.
    onnx_type : str
        The type as ONNX Runtime writes it, for example ``tensor(float)`` or ``seq(tensor(int64))``.
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: Shape | None
    onnx_type: str

    @property
    def type(self) -> str:
        """`onnx_type`, under the name that ONNX Runtime has for it."""
        return self.onnx_type

    def __str__(self) -> str:
        dims = "?" if self.shape is None else ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name}: {self.onnx_type}[{dims}]"


@functools.cache
def element_name(elem_type: int) -> str:
    """Name of an ONNX element type as it stands in a type string, for example ``float8e4m3fn``."""
    return str(TensorProto.DataType.Name(elem_type)).lower()


def onnx_type_string(proto: TypeProto) -> str:
    """Write a type as ONNX Runtime does: ``tensor(float)``, ``seq(...)``, ``optional(...)``, ``map(...)``."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({element_name(proto.tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"seq({onnx_type_string(proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({onnx_type_string(proto.optional_type.elem_type)})"
    if kind == "map_type":
        return f"map({element_name(proto.map_type.key_type)},{onnx_type_string(proto.map_type.value_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({element_name(proto.sparse_tensor_type.elem_type)})"
    return "undefined"


def type_from_string(text: str, shape: Sequence[int | str | None]) -> TypeProto | None:
    """Undo `onnx_type_string` for tensors; None for anything else."""
    names = {f"tensor({element_name(t)})": t for t in TensorProto.DataType.values()}
    return helper.make_tensor_type_proto(names[text], list(shape)) if text in names else None


def dtype_of(onnx_type: str) -> np.dtype[Any] | None:
    """The dtype of `TensorInfo` for a type as `onnx_type_string` writes it."""
    found = None if "map(" in onnx_type else re.search(r"tensor\((\w+)\)", onnx_type)
    if found is None or found[1] == "undefined":
        return None
    return numpy_dtype(TensorProto.DataType.Value(found[1].upper()))


def innermost(proto: TypeProto) -> TypeProto:
    """The tensor (or map, or undefined) type inside sequences and optionals."""
    while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type"):
        proto = getattr(proto, kind).elem_type
    return proto


@functools.cache
def numpy_dtype(elem_type: int) -> np.dtype[Any]:
    """The numpy (or ml_dtypes) dtype of an ONNX element type; ``object`` for strings."""
    if elem_type not in _KNOWN:
        raise InvalidModelError(f"There is no ONNX element type {elem_type}: the model is damaged. Export it again.")
    return OBJECT if elem_type == TensorProto.STRING else np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))


def tensor_info(value: ValueInfoProto) -> TensorInfo:
    """Describe one graph input or output."""
    inner = innermost(value.type)
    dtype: np.dtype[Any] | None = None
    shape: Shape | None = None
    if inner.WhichOneof("value") in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(inner, str(inner.WhichOneof("value")))
        if tensor.elem_type:
            dtype = numpy_dtype(tensor.elem_type)
        if tensor.HasField("shape"):
            shape = tuple(
                d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else (_text(d.dim_param) or None)
                for d in tensor.shape.dim
            )
    return TensorInfo(value.name, dtype, shape, onnx_type_string(value.type))


def _text(name: str | bytes) -> str:
    """Bytes are a name that is not UTF-8."""
    return name if isinstance(name, str) else name.decode(errors="replace")


def has_zero(dims: Iterable[TensorShapeProto.Dimension]) -> bool:
    """Whether one of these sizes is known to be 0: a tensor of such a shape has no elements."""
    return any(dim.HasField("dim_value") and not dim.dim_value for dim in dims)


def is_whole(tensor: TensorProto) -> bool:
    """Whether a tensor holds as many values as its shape says, here and not in another file."""
    if tensor.data_location == TensorProto.EXTERNAL or any(d < 0 for d in tensor.dims):
        return False
    if tensor.data_type not in _KNOWN:
        return False
    count = math.prod(tensor.dims)
    if tensor.data_type == TensorProto.STRING:
        return len(tensor.string_data) == count
    bits = PACKED_BITS.get(tensor.data_type) or 8 * numpy_dtype(tensor.data_type).itemsize
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data) == -(-count * bits // 8)
    field = helper.tensor_dtype_to_field(tensor.data_type)
    stored = -(-count * bits // 8) if tensor.data_type in PACKED_BITS else count
    if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        stored *= 2
    return len(getattr(tensor, field)) == stored


def pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Pack a 4-bit or 2-bit ml_dtypes array, the first element in the lowest bits (onnx.proto, ``TensorProto``)."""
    per_byte = 8 // bits
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)])
    packed = np.zeros(flat.size // per_byte, np.uint8)
    for i in range(per_byte):
        packed |= flat[i::per_byte] << (i * bits)
    return packed


def unpack(data: np.ndarray[Any, np.dtype[np.uint8]], elem_type: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Undo `pack`; returns an array that owns its data."""
    bits = PACKED_BITS[elem_type]
    per_byte = 8 // bits
    size = int(np.prod(shape, dtype=np.int64))
    flat = np.empty(data.size * per_byte, np.uint8)
    for i in range(per_byte):
        flat[i::per_byte] = (data >> (i * bits)) & ((1 << bits) - 1)
    flat = flat[:size]
    if elem_type in (TensorProto.INT4, TensorProto.INT2):
        sign = np.uint8(1 << (bits - 1))
        signed = ((flat ^ sign).astype(np.int8) - np.int8(sign)).reshape(shape)
        return signed.astype(numpy_dtype(elem_type))
    return flat.view(numpy_dtype(elem_type)).reshape(shape)


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """What a node Constant makes, where it is a tensor of numbers that are written down in it."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            return attribute.t
        kind = _NUMBERS.get(attribute.name)
        if kind is not None and attribute.type:  # a reference to a function's attribute has none
            return numpy_helper.from_array(np.array(helper.get_attribute_value(attribute), kind))
    return None
