# SPDX-License-Identifier: Apache-2.0
"""Element types, and numbers of each: ordinary ones, wide ones and special ones."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Sequence

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16})
INTEGERS = frozenset(
    {
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    }
)
NARROW = frozenset(
    {
        *(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ),
        *(TensorProto.FLOAT8E8M0, TensorProto.FLOAT4E2M1),
        *(TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2),
    }
)
#: What may be in the typed fields of an initializer, and how many elements that has at most.
_TYPED = (FLOATS | INTEGERS | {TensorProto.BOOL}) - {TensorProto.BFLOAT16}
_LISTED = 64
_FEW_BITS = frozenset({TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2})
#: How often each type is drawn, beside 1 for the others.
WEIGHTS = {
    TensorProto.FLOAT: 30,
    TensorProto.INT64: 6,
    TensorProto.INT32: 5,
    TensorProto.FLOAT16: 4,
    TensorProto.DOUBLE: 3,
}

WORDS = ("", "a", "b", "abc", "ab c", "A", "żółw", "1", "-7", "3.5", "a-b", " x ")

#: How the numbers of a tensor are drawn. `tame`: a few small ones, so that a product stays small too, and what is not finite.
PROFILES = ("ordinary", "wide", "special", "tame", "tame-finite")


def np_dtype(kind: int) -> np.dtype:
    """The numpy or ml_dtypes dtype of an element type; object for strings."""
    return np.dtype(object) if kind == TensorProto.STRING else np.dtype(helper.tensor_dtype_to_np_dtype(kind))


def onnx_kind(dtype: np.dtype) -> int:
    """The element type of a dtype."""
    return TensorProto.STRING if dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(dtype)


def kind_name(kind: int) -> str:
    return str(TensorProto.DataType.Name(kind)).lower()


@functools.cache
def kinds_of(types: tuple[str, ...]) -> tuple[int, ...]:
    """The element types among type strings such as ``tensor(float)``."""
    names = {f"tensor({kind_name(kind)})": kind for kind in TensorProto.DataType.values() if kind}
    return tuple(names[t] for t in types if t in names and not t.startswith("tensor(complex"))


def draw_kind(rng: random.Random, kinds: Sequence[int]) -> int:
    """One of the element types, the usual ones more often."""
    pool = [kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
    return rng.choice(pool)


@functools.cache
def _special(kind: int) -> tuple[object, ...]:
    dtype = np_dtype(kind)
    if kind == TensorProto.BOOL:
        return (False, True)
    if kind in INTEGERS:
        info = np.iinfo(dtype)
        near = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, -1, 2, -2, 7}
        near |= {s * (1 << b) + d for b in (7, 8, 15, 16, 23, 24, 31, 32, 53) for s in (1, -1) for d in (-1, 0, 1)}
        return tuple(sorted(n for n in near if info.min <= n <= info.max))
    limits = _limits(dtype)
    return (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, float("nan"), float("inf"), float("-inf"), *limits)


def _all(dtype: np.dtype) -> tuple[int, ...]:
    """Every number of an integer type of a few bits."""
    info = ml_dtypes.iinfo(dtype)
    return tuple(range(int(info.min), int(info.max) + 1))


def _limits(dtype: np.dtype) -> tuple[float, ...]:
    """The largest numbers, the smallest normal ones and a subnormal one."""
    info = ml_dtypes.finfo(dtype)
    large, small, tiny = float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)
    return (large, -large, small, -small, tiny, large / 2)


def tame(dtype: np.dtype) -> tuple[float, ...]:
    """A few numbers that every product of some stays small with, and what is not finite."""
    if dtype.kind == "b":
        return (0, 1)
    if dtype.kind == "u":
        return (0, 1, 2, 3, 7, 100)
    if dtype.kind == "i":
        return (-100, -3, -1, 0, 1, 2, 100)
    return (-3, -1, -0.5, -0.0, 0, 0.5, 1, 2, np.inf, -np.inf, np.nan)


def numbers(rng: random.Random, kind: int, size: int, profile: str = "ordinary") -> np.ndarray:
    """A vector of numbers of a type."""
    dtype = np_dtype(kind)
    if kind == TensorProto.STRING:
        return np.array([rng.choice(WORDS) for _ in range(size)], object)
    if kind in _FEW_BITS:
        return np.array([rng.choice(_all(dtype)) for _ in range(size)], dtype)
    if profile.startswith("tame"):
        few = [n for n in tame(dtype) if profile == "tame" or np.isfinite(n)]
        return np.array([rng.choice(few) for _ in range(size)], dtype)
    if profile == "special":
        pool = _special(kind)
        usual = numbers(rng, kind, size)
        picks = [rng.choice(pool) if rng.random() < 0.5 else None for _ in range(size)]
        with np.errstate(all="ignore"):
            drawn = [usual[i] if p is None else np.asarray(p).astype(dtype) for i, p in enumerate(picks)]
        return np.array(drawn, dtype).reshape(size)
    if kind == TensorProto.BOOL:
        return np.array([rng.random() < 0.5 for _ in range(size)], bool)
    if kind in INTEGERS:
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if profile == "wide" else (max(info.min, -20), min(info.max, 20))
        if profile == "wide" and rng.random() < 0.5:
            bits = rng.randrange(8, dtype.itemsize * 8 + 1)
            low, high = max(low, -(1 << bits)), min(high, 1 << bits)
        return np.array([rng.randint(low, high) for _ in range(size)], dtype)
    scale = rng.choice((1.0, 1.0, 3.0, 10.0)) if profile == "ordinary" else 10.0 ** rng.randint(-6, 4)
    seed = np.random.default_rng(rng.randrange(1 << 32))
    plain = seed.standard_normal(size) * scale
    if profile == "ordinary" and rng.random() < 0.2:
        plain = np.round(plain)
    with np.errstate(all="ignore"):
        return plain.astype(np.float32).astype(dtype) if kind != TensorProto.DOUBLE else plain


def to_tensor(array: np.ndarray, name: str) -> TensorProto:
    """An initializer with an array's content, of some small ones in the typed fields."""
    if array.dtype == object:
        flat = [str(s).encode() for s in array.ravel()]
        return TensorProto(name=name, data_type=TensorProto.STRING, dims=array.shape, string_data=flat)
    tensor = numpy_helper.from_array(array, name)
    if array.size > _LISTED or tensor.data_type not in _TYPED or zlib.crc32(name.encode()) % 4:
        return tensor
    return helper.make_tensor(name, tensor.data_type, array.shape, array.ravel())
