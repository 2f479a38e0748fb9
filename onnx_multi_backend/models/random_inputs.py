# SPDX-License-Identifier: Apache-2.0
"""Inputs drawn at random, the same for the same seed."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto

from onnx_multi_backend.errors import InputError, OptionError, OptionTypeError
from onnx_multi_backend.models.tensors import TensorInfo

#: Integers are drawn below this number: small, because they are often indices.
_MOST = 10

#: Sizes of dimensions that are not fixed: of images, of a batch, and of anything else behind the first axis.
_PIXELS, _CHANNELS, _BATCH, _STEPS = 224, 3, 1, 16
_IS_BATCH = re.compile(r"batch|^n$|^b$|^bs$", re.IGNORECASE)
_IS_PIXELS = re.compile(r"height|width|^h$|^w$", re.IGNORECASE)
_SUM = re.compile(r"\s*\+\s*")

#: What passes indices on as they are.
_PASSES_ON = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})


def parse_dims(given: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, int]:
    """Read each ``NAME=SIZE``, or ``INPUT:AXIS=SIZE`` for a dimension without a name.

    Raises
    ------
    InputError
        The model has no such open dimension, or the size is not a whole number.
    """
    named = {d for info in infos for d in info.shape or () if isinstance(d, str)}
    placed = {f"{i.name}:{axis}" for i in infos for axis, d in enumerate(i.shape or ()) if not isinstance(d, int)}
    dims: dict[str, int] = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise InputError(
                f"--dim is written NAME=SIZE or INPUT:AXIS=SIZE, for example --dim N=4 or --dim x:0=4; {text!r} given."
            )
        if name not in named | placed:
            raise InputError(
                f"--dim {text}: no input has a dimension {name!r}. The symbolic dimensions: "
                f"{', '.join(sorted(named)) or 'none'}. By input and axis: {', '.join(sorted(placed)) or 'none'}."
            )
        dims[name] = int(size)
    return dims


def sizes_of(shapes: Mapping[str, Sequence[int]], infos: Sequence[TensorInfo]) -> dict[str, int]:
    """The sizes of the dimensions that whole shapes fix, by ``INPUT:AXIS``.

    Raises
    ------
    OptionError
        A shape does not fit its input.
    """
    by_name = {info.name: info for info in infos}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in by_name:
            raise OptionError(
                f"The shape of {name!r}: there is no such input; there are {', '.join(by_name) or 'none'}."
            )
        if isinstance(shape, str) or not isinstance(shape, Sequence) or not all(map(_is_size, shape)):
            raise OptionTypeError(f"The shape of {name!r} is a list of sizes; {shape!r} was given.")
        declared = by_name[name].shape
        if declared is not None and len(declared) != len(shape):
            raise OptionError(f"The shape {tuple(shape)} does not fit the input {by_name[name]}.")
        for axis, (size, dim) in enumerate(zip(shape, declared or (), strict=False)):
            if isinstance(dim, int) and dim != size:
                raise OptionError(
                    f"The shape {tuple(shape)} does not fit the input {by_name[name]}: dimension {axis} is {dim}."
                )
            sizes[f"{name}:{axis}"] = int(size)
    return sizes


def _is_size(size: Any) -> bool:
    return isinstance(size, numbers.Integral) and not isinstance(size, bool) and int(size) >= 0


def draw(
    infos: Sequence[TensorInfo], seed: int, dims: Mapping[str, int], below: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Any]:
    """Draw a value for each input: floats in [0, 1), integers below 10, booleans, strings; masks are ones.

    Of the dimensions that are not fixed a batch is 1, an image 3 by 224 by 224, and others are 16, unless `dims` says otherwise; an
    integer whose name tells of a length is the longest of these. A sequence gets two elements.

    Parameters
    ----------
    below : mapping of str to int, optional
        Integer inputs that are drawn below another number; see `tables`.

    Raises
    ------
    InputError
        An input is of a type that cannot be drawn.
    """
    generator = np.random.default_rng(seed)
    longest = max((size for info in infos for size in shape_of(info, dims)[1:]), default=1)
    return {
        info.name: _value(info, info.onnx_type, generator, dims, below.get(info.name, _MOST), longest) for info in infos
    }


def tables(model: ModelProto) -> dict[str, int]:
    """The integer inputs that are indices into tables of the model, each with the length of the smallest one."""
    lengths = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    origin = {value.name: value.name for value in model.graph.input}
    found: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type in _PASSES_ON and node.input and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        elif node.op_type == "Gather" and node.input[0] in lengths and node.input[1] in origin:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            name, shape = origin[node.input[1]], lengths[node.input[0]]
            if -len(shape) <= axis < len(shape):
                found[name] = min(found.get(name, shape[axis]), shape[axis])
    return found


def shape_of(info: TensorInfo, dims: Mapping[str, int]) -> list[int]:
    """The shape that an input is drawn with."""
    shape = info.shape or ()
    image = len(shape) == 4 and info.dtype is not None and info.dtype.kind == "f" and shape[1] in (1, 3, 4, None)
    return [
        dim if isinstance(dim, int) else dims.get(f"{info.name}:{axis}", _size(dim, axis, dims, image=image))
        for axis, dim in enumerate(shape)
    ]


def _size(dim: str | None, axis: int, dims: Mapping[str, int], *, image: bool) -> int:
    if dim in dims:
        return dims[str(dim)]
    if dim is not None and len(terms := _SUM.split(dim)) > 1:  # "past_sequence_length + 1", as exporters write it
        return sum(int(term) if term.isdecimal() else _size(term, axis, dims, image=image) for term in terms)
    if (dim is None and axis == 0) or (dim is not None and _IS_BATCH.search(dim)):
        return _BATCH
    if dim is not None and _IS_PIXELS.search(dim):
        return _PIXELS
    if axis == 0:
        return _BATCH
    if image:
        return _CHANNELS if axis == 1 else _PIXELS
    return _STEPS


def _value(
    info: TensorInfo, onnx_type: str, generator: np.random.Generator, dims: Mapping[str, int], below: int, longest: int
) -> Any:
    kind, _, inner = onnx_type.partition("(")
    if kind == "optional":
        return _value(info, inner[:-1], generator, dims, below, longest)
    if kind == "seq":
        return [_value(info, inner[:-1], generator, dims, below, longest) for _ in range(2)]
    if kind != "tensor" or info.dtype is None:
        raise InputError(f"the input {info} cannot be drawn at random. Run the model from Python.")
    shape = shape_of(info, dims)
    try:
        return _of_shape(info, shape, generator, below, longest)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than can be counted
        raise InputError(
            f"The input {info} cannot be drawn with the shape {shape}: {error}. Give smaller sizes."
        ) from error


def _of_shape(
    info: TensorInfo, shape: Sequence[int], generator: np.random.Generator, below: int, longest: int
) -> np.ndarray[Any, Any]:
    assert info.dtype is not None
    name = info.name.lower()
    if "mask" in name and info.dtype != object:
        return np.ones(shape, info.dtype)
    if re.search(r"length|_lens?$", name) and info.dtype.kind in "iu":
        return np.full(shape, longest, info.dtype)
    return _array(info.dtype, shape, generator, below)


def _array(
    dtype: np.dtype[Any], shape: Sequence[int], generator: np.random.Generator, below: int
) -> np.ndarray[Any, Any]:
    if dtype == object:
        words = [f"text{i}" for i in generator.integers(0, _MOST, size=int(np.prod(shape, dtype=np.int64)))]
        made = np.empty(len(words), dtype=object)
        made[:] = words
        return made.reshape(shape)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        return (generator.random(shape) + 1j * generator.random(shape)).astype(dtype)
    try:
        most = min(max(below, 1), int(ml_dtypes.iinfo(dtype).max) + 1)  # type: ignore[no-untyped-call]
    except ValueError:
        return generator.random(shape).astype(dtype)
    return generator.integers(0, most, shape).astype(dtype)
