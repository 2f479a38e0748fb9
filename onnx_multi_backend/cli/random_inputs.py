# SPDX-License-Identifier: Apache-2.0
"""Inputs drawn at random, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from onnx_multi_backend.errors import InputError
from onnx_multi_backend.tensors import TensorInfo

#: Integers are drawn below this number: small, because they are often indices.
_MOST = 10


def parse_dims(given: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, int]:
    """Read each ``NAME=SIZE``.

    Raises
    ------
    InputError
        The model has no such symbolic dimension, or the size is no whole number.
    """
    known = sorted({d for info in infos for d in info.shape or () if isinstance(d, str)})
    dims: dict[str, int] = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise InputError(f"--dim is written NAME=SIZE, for example --dim N=4; {text!r} given.")
        if name not in known:
            raise InputError(
                f"--dim {text}: no input has a dimension {name!r}. The symbolic dimensions: "
                f"{', '.join(known) or 'none'}."
            )
        dims[name] = int(size)
    return dims


def draw(infos: Sequence[TensorInfo], seed: int, dims: Mapping[str, int]) -> dict[str, Any]:
    """Draw a value for each input: floats in [0, 1), integers below 10, booleans, strings.

    Dimensions that are not fixed are 1 unless `dims` says otherwise. A sequence gets two elements.

    Raises
    ------
    InputError
        An input is of a type that cannot be drawn.
    """
    generator = np.random.default_rng(seed)
    return {info.name: _value(info, info.onnx_type, generator, dims) for info in infos}


def _value(info: TensorInfo, onnx_type: str, generator: np.random.Generator, dims: Mapping[str, int]) -> Any:
    kind, _, inner = onnx_type.partition("(")
    if kind == "optional":
        return _value(info, inner[:-1], generator, dims)
    if kind == "seq":
        return [_value(info, inner[:-1], generator, dims) for _ in range(2)]
    if kind != "tensor" or info.dtype is None:
        raise InputError(f"the input {info} cannot be drawn at random. Run the model from Python.")
    shape = [d if isinstance(d, int) else dims.get(str(d), 1) for d in info.shape or ()]
    return _array(info.dtype, shape, generator)


def _array(dtype: np.dtype[Any], shape: Sequence[int], generator: np.random.Generator) -> np.ndarray[Any, Any]:
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
        most = min(_MOST, int(ml_dtypes.iinfo(dtype).max) + 1)  # type: ignore[no-untyped-call]
    except ValueError:
        return generator.random(shape).astype(dtype)
    return generator.integers(0, most, shape).astype(dtype)
