# SPDX-License-Identifier: Apache-2.0
"""Reading a model's file without its weights, and putting them back where an engine gets the model in memory.

A large initializer, or Constant of the main graph, becomes external data that lies in the model's own file, which is what it is; everything that can
leave external data unread leaves it unread too. Integers that an engine may not hold are read however many they are. Source of the field numbers:
onnx.proto, and https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
    TensorShapeProto,
    ValueInfoProto,
)

from onnx_multi_backend.models.graph_walk import all_tensors
from onnx_multi_backend.models.tensors import WIDE

#: Weights of fewer bytes are read with the rest. So are all that are `WIDE`: whether an engine holds them depends on their values.
LARGE = 64 * 1024

_OP_TYPE = NodeProto.OP_TYPE_FIELD_NUMBER
_TYPES = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
_PLACE = (TensorProto.EXTERNAL_DATA_FIELD_NUMBER, TensorProto.DATA_LOCATION_FIELD_NUMBER)


class _Field(NamedTuple):
    """One field of an encoded message: its number, where its tag starts, and where its value starts and ends."""

    number: int
    tag: int
    start: int
    end: int


class _UnexpectedError(Exception):
    """The bytes are not what this reader understands; protobuf's own parser is to judge them."""


class WithoutWeights(NamedTuple):
    """An encoded model whose large weights are left in its file.

    Attributes
    ----------
    model : bytes
        In which these tensors are external data that lies in the model's own file.
    skeleton : bytes
        In which they are graph inputs of the same type, for ONNX's checker.
    """

    model: bytes
    skeleton: bytes


def without_weights(file: Path, size: int) -> WithoutWeights | None:
    """The encoded model with its large weights left in the file; None where there are none, or no model can be seen.

    Parameters
    ----------
    file : Path
    size : int
        Of the file, in bytes.
    """
    if size < LARGE:
        return None
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _model(data, _Place(file.name, 0))
        except (_UnexpectedError, IndexError, DecodeError):
            return None


def by_address(data: mmap.mmap, address: int, location: str) -> bytes | None:
    """The encoded model whose large weights are external data of a location, each at its address; None where there are none.

    Parameters
    ----------
    data : mmap.mmap
        Of the file, which `without_weights` made something of.
    address : int
        Of its first byte.
    location : str
    """
    try:
        graph = _main_graph(data)
        made = _graph(data, graph, _Place(location, address)) if graph is not None else None
    except (_UnexpectedError, IndexError, DecodeError):  # it was written over meanwhile
        return None
    return _around(data, graph, made[0]) if graph is not None and made is not None else None


def may_stay(elem_type: int, size: int) -> bool:
    """Whether values of a type, and of as many bytes, may be left in a file: nothing that is decided depends on them."""
    return size >= LARGE and elem_type not in WIDE


def is_in(file: Path | None, tensor: TensorProto) -> bool:
    """Whether a tensor's values were left in the model's own file."""
    return (
        file is not None
        and tensor.data_location == TensorProto.EXTERNAL
        and any(e.key == "location" and e.value == file.name for e in tensor.external_data)
    )


def with_weights(model: ModelProto, file: Path | None) -> ModelProto:
    """The model with the weights that `without_weights` left in the file; the very same one where there are none."""
    if file is None or not any(is_in(file, tensor) for tensor in all_tensors(model)):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in all_tensors(copy):
        if is_in(file, tensor):
            fill(tensor, file)
    return copy


def fill(tensor: TensorProto, file: Path) -> None:
    """Put the values of a tensor back that lie in the model's own file."""
    place = {e.key: e.value for e in tensor.external_data}
    with file.open("rb") as stream:
        stream.seek(int(place["offset"]))
        tensor.raw_data = stream.read(int(place["length"]))
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


class _Place(NamedTuple):
    """Where weights are said to lie: a location, and the offset of the file's first byte."""

    location: str
    first: int


#: An encoded message, in pieces that are joined once.
_Parts = list[bytes]


class _Left(NamedTuple):
    """What an initializer or a Constant becomes whose values are left in the file, and the graph input in its place."""

    encoded: _Parts
    declared: ValueInfoProto


def _model(data: mmap.mmap, place: _Place) -> WithoutWeights | None:
    if (graph := _main_graph(data)) is None or (made := _graph(data, graph, place)) is None:
        return None
    return WithoutWeights(*(_around(data, graph, parts) for parts in made))


def _main_graph(data: mmap.mmap) -> _Field | None:
    graphs = [field for field in _fields(data, 0, len(data)) if field.number == ModelProto.GRAPH_FIELD_NUMBER]
    return graphs[0] if len(graphs) == 1 else None


def _around(data: mmap.mmap, graph: _Field, parts: _Parts) -> bytes:
    """The model with another graph in the place of its own."""
    before, after = data[: graph.tag], data[graph.end :]
    return b"".join([before, _head(ModelProto.GRAPH_FIELD_NUMBER, sum(map(len, parts))), *parts, after])


def _graph(data: mmap.mmap, graph: _Field, place: _Place) -> tuple[_Parts, _Parts] | None:
    """The graph with its weights left in the file, and with inputs in their stead; None where none is large."""
    kinds = {GraphProto.INITIALIZER_FIELD_NUMBER: _initializer, GraphProto.NODE_FIELD_NUMBER: _constant}
    model: _Parts = []
    skeleton: _Parts = []
    inputs: list[bytes] = []
    at = graph.start
    for field in _large_fields(data, graph.start, graph.end):
        left = kinds[field.number](data, field.start, field.end, place) if field.number in kinds else None
        if left is None:
            continue
        kept = data[at : field.tag]
        model += [kept, _head(field.number, sum(map(len, left.encoded))), *left.encoded]
        skeleton.append(kept)
        inputs.append(left.declared.SerializeToString())
        at = field.end
    if not inputs:
        return None
    rest = data[at : graph.end]
    heads = (_head(GraphProto.INPUT_FIELD_NUMBER, len(declared)) for declared in inputs)
    return [*model, rest], [*skeleton, rest, *chain.from_iterable(zip(heads, inputs, strict=True))]


def _initializer(data: mmap.mmap, start: int, end: int, place: _Place) -> _Left | None:
    encoded = _tensor(data, start, end, place)
    if encoded is None:
        return None
    tensor = TensorProto.FromString(b"".join(encoded))
    return _Left(encoded, _declared(tensor.name, tensor))


def _constant(data: mmap.mmap, start: int, end: int, place: _Place) -> _Left | None:
    """A Constant as it should be: the checker is to see any other as it is."""
    operator = [data[f.start : f.end] for f in _fields(data, start, end) if f.number == _OP_TYPE]
    if operator != [b"Constant"]:
        return None

    def tensor(start: int, end: int) -> _Parts | None:
        return _tensor(data, start, end, place)

    def attribute(start: int, end: int) -> _Parts | None:
        return _rewritten(data, start, end, {AttributeProto.T_FIELD_NUMBER: tensor})

    made = _rewritten(data, start, end, {NodeProto.ATTRIBUTE_FIELD_NUMBER: attribute})
    if made is None:
        return None
    node = NodeProto.FromString(b"".join(made))
    attributes = [(a.name, a.type) for a in node.attribute]
    is_valid = (
        node.domain in ("", "ai.onnx")
        and not node.input
        and len(node.output) == 1
        and attributes == [("value", AttributeProto.TENSOR)]
    )
    return _Left(made, _declared(node.output[0], node.attribute[0].t)) if is_valid else None


def _declared(name: str, tensor: TensorProto) -> ValueInfoProto:
    if tensor.data_type not in _TYPES:  # the checker would not see it
        raise _UnexpectedError
    value = ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = tensor.data_type
    value.type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension(dim_value=size) for size in tensor.dims)
    value.type.tensor_type.shape.SetInParent()
    return value


def _rewritten(
    data: mmap.mmap, start: int, end: int, parts: Mapping[int, Callable[[int, int], _Parts | None]]
) -> _Parts | None:
    """A message with its large fields of these numbers written anew; None where none of them is."""
    made: _Parts = []
    at = start
    for field in _large_fields(data, start, end):
        if field.number in parts:
            new = parts[field.number](field.start, field.end)
            if new is not None:
                made += [data[at : field.tag], _head(field.number, sum(map(len, new))), *new]
                at = field.end
    return [*made, data[at:end]] if at != start else None


def _tensor(data: mmap.mmap, start: int, end: int, place: _Place) -> _Parts | None:
    """The tensor, its raw data replaced by their place in the file; None where they are not large, or lie elsewhere already."""
    raw: _Field | None = None
    rest = bytearray()
    for part in _fields(data, start, end):
        if part.number == TensorProto.RAW_DATA_FIELD_NUMBER:
            if raw is not None:
                raise _UnexpectedError
            raw = part
        elif part.number in _PLACE:
            return None
        else:
            rest += data[part.tag : part.end]
    if raw is None or not may_stay(TensorProto.FromString(bytes(rest)).data_type, raw.end - raw.start):
        return None
    told = {"location": place.location, "offset": str(place.first + raw.start), "length": str(raw.end - raw.start)}
    entries = [StringStringEntryProto(key=key, value=value) for key, value in told.items()]
    head = TensorProto(data_location=TensorProto.EXTERNAL, external_data=entries)
    return [bytes(rest), head.SerializeToString()]


def _large_fields(data: mmap.mmap, at: int, end: int) -> Iterator[_Field]:
    """The fields of a message that are `LARGE`; a graph has thousands of others."""
    while at < end:
        tag, key = at, data[at]
        if key > 127 or key & 7 != 2:
            field = next(_fields(data, at, end))
            at = field.end
            if at - field.start >= LARGE:
                yield field
            continue
        start = tag + 2
        length = data[tag + 1]
        if length > 127:
            length, start = _varint(data, tag + 1)
        at = start + length
        if at > end:
            raise _UnexpectedError
        if length >= LARGE:
            yield _Field(key >> 3, tag, start, at)


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        tag = at
        key = data[at]
        at += 1
        if key > 127:
            key, at = _varint(data, tag)
        kind = key & 7
        start = at
        if kind == 2:
            length = data[at]
            start = at + 1
            if length > 127:
                length, start = _varint(data, at)
            at = start + length
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise _UnexpectedError
        if at > end:
            raise _UnexpectedError
        yield _Field(key >> 3, tag, start, at)


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return byte, at
    value, shift = byte & 127, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise _UnexpectedError


def _head(number: int, size: int) -> bytes:
    """What stands before a field of so many bytes."""
    length = bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | 2, *length])
