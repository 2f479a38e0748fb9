# SPDX-License-Identifier: Apache-2.0
"""Mutations of tensors: dimensions, types, data, where the data is."""

from __future__ import annotations

import random

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

from backend_test.search.mutations.walk import INTS, REALS, extreme, graphs, pick, tensors

#: What onnx raises for a tensor that another mutation has damaged: KeyError for a type that it does not know.
_UNREADABLE = (KeyError, ValueError, TypeError, onnx.checker.ValidationError)


def dims(model: ModelProto, rng: random.Random) -> str:
    """A tensor gets other dimensions than its data has."""
    tensor = pick(rng, tensors(model))
    if tensor is None:
        return ""
    before = list(tensor.dims)
    how = rng.randrange(3)
    if how == 0 or not tensor.dims:
        tensor.dims.append(extreme(rng))
    elif how == 1:
        del tensor.dims[rng.randrange(len(tensor.dims))]
    else:
        place = rng.randrange(len(tensor.dims))
        tensor.dims[place] = extreme(rng, tensor.dims[place])
    return f"tensor {tensor.name!r} dims {before} -> {list(tensor.dims)}"


def data(model: ModelProto, rng: random.Random) -> str:
    """A tensor's raw data is cut, emptied or made longer."""
    tensor = pick(rng, tensors(model))
    if tensor is None:
        return ""
    if not tensor.HasField("raw_data") and tensor.data_location != TensorProto.EXTERNAL:
        try:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
        except _UNREADABLE:
            return ""
    size = len(tensor.raw_data)
    left = rng.choice((0, max(size - 1, 0), size // 2, size + 1, size + 64))
    tensor.raw_data = (tensor.raw_data + bytes(64))[:left] if left > size else tensor.raw_data[:left]
    return f"tensor {tensor.name!r}: {left} bytes instead of {size}"


def kind(model: ModelProto, rng: random.Random) -> str:
    """A tensor gets another element type; its data stays."""
    tensor = pick(rng, tensors(model))
    if tensor is None:
        return ""
    before = tensor.data_type
    tensor.data_type = rng.choice((*range(29), 1000, -1))
    return f"tensor {tensor.name!r} type {before} -> {tensor.data_type}"


def numbers(model: ModelProto, rng: random.Random) -> str:
    """A tensor gets extreme numbers."""
    tensor = pick(rng, tensors(model))
    if tensor is None or tensor.data_type == TensorProto.STRING:
        return ""
    try:
        array = np.array(numpy_helper.to_array(tensor))
    except _UNREADABLE:
        return ""
    if not array.size or array.dtype.kind not in "iufb":
        return ""
    flat = array.reshape(-1)
    told = []
    for _ in range(rng.choice((1, 1, 2, flat.size))):
        place = rng.randrange(flat.size)
        with np.errstate(all="ignore"):
            number = np.array(rng.choice(INTS if array.dtype.kind in "iub" else REALS))
            flat[place] = number.astype(array.dtype)
        told.append(str(flat[place]))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return f"tensor {tensor.name!r} holds {', '.join(told[:4])}"


def external(model: ModelProto, rng: random.Random) -> str:
    """A tensor's data is said to be in a file: elsewhere, missing, a device, or beyond its end."""
    tensor = pick(rng, tensors(model))
    if tensor is None:
        return ""
    places = ("../../etc/passwd", "/etc/passwd", "missing.bin", "", ".", "/dev/zero", "a\x00b", "model.onnx")
    entries = {"location": rng.choice(places)}
    for word in ("offset", "length"):
        if rng.random() < 0.6:
            entries[word] = rng.choice(("0", "4", "-1", str(2**63 - 1), "nothing", "", str(1 << 40)))
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=w) for k, w in entries.items())
    if rng.random() < 0.7:
        tensor.ClearField("raw_data")
    return f"tensor {tensor.name!r} external {entries}"


def name(model: ModelProto, rng: random.Random) -> str:
    """An initializer is renamed, comes twice, or goes."""
    graph = pick(rng, (g for g in graphs(model) if g.initializer))
    if graph is None:
        return ""
    tensor = rng.choice(list(graph.initializer))
    before = tensor.name
    how = rng.randrange(4)
    if how == 0:
        graph.initializer.add().CopyFrom(tensor)
        return f"initializer {before!r} twice"
    if how == 1:
        graph.initializer.remove(tensor)
        return f"initializer {before!r} removed"
    if how == 2:
        value = graph.input.add(name=before)
        value.type.tensor_type.elem_type = tensor.data_type
        value.type.tensor_type.shape.SetInParent()
        return f"initializer {before!r} is an input too"
    tensor.name = rng.choice(("", "nothing", *(n for node in graph.node for n in node.output)))
    return f"initializer {before!r} renamed {tensor.name!r}"


def sparse(model: ModelProto, rng: random.Random) -> str:
    """An initializer becomes a sparse one."""
    tensor = pick(rng, model.graph.initializer)
    if tensor is None:
        return ""
    made = model.graph.sparse_initializer.add()
    made.values.CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), tensor.name))
    made.indices.CopyFrom(numpy_helper.from_array(np.array([0, rng.choice((1, 0, -1, 10**6))], np.int64), ""))
    made.dims.extend(list(tensor.dims) or [4])
    if rng.random() < 0.7:
        model.graph.initializer.remove(tensor)
    return f"initializer {made.values.name!r} sparse"


MUTATIONS = (dims, data, kind, numbers, numbers, external, name, sparse)
