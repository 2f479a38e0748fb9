# SPDX-License-Identifier: Apache-2.0
"""Special values of each floating-point type, and how results are held to what ONNX says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

#: NaN of both signs, infinities, zeros, subnormal numbers, ordinary ones, ties, and what overflows a narrower type.
FLOATS = np.float32(
    [
        *(np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40),
        *(1, -1, 0.5, -0.5, 2.5, -2.5, 5, 7, 0.25, -0.25, 0.2, 1e30, -1e30, 3.4e38, -3.4e38),
    ]
)

#: The same for casts to 8 and 4 bits: largest numbers, what lies half way beyond them, smallest ones and their halves.
NARROW = np.float32(
    [
        *FLOATS,
        *(5.1, 6.1, 240, 247, 248, 249, 447, 448, 449, 463, 464, 465, 479, 480, 481, -465, 57344, 60000),
        *(61439, 61440, 61441, 65504, -61441, 2**-9, 2**-10, 1.5 * 2**-10, 2**-16, 2**-17, 1.5 * 2**-17, -(2**-18)),
    ]
)


def vector(values: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
    """The values three times and a bit, so that a kernel meets each in the body of its loop and in the tail."""
    with np.errstate(all="ignore"):
        return np.concatenate([values, values[::-1], values, values[:3]]).astype(dtype)


def pairs(values: np.ndarray = FLOATS, others: np.ndarray = FLOATS, dtype: Any = np.float32) -> tuple[np.ndarray, ...]:
    """Two vectors that hold every pair."""
    one, other = np.meshgrid(values, others, indexing="ij")
    with np.errstate(all="ignore"):
        return one.ravel().astype(dtype), other.ravel().astype(dtype)


def rows(dtype: Any = np.float32) -> np.ndarray:
    """Rows for reductions: ordinary ones, with one special value in them, and of one special value alone."""
    ordinary = np.arange(1, 10, dtype=np.float32)
    made = [ordinary]
    for value in (np.nan, np.inf, -np.inf, -0.0):
        made += [np.where(np.arange(9) == place, np.float32(value), ordinary) for place in (0, 4, 8)]
        made.append(np.full(9, value, np.float32))
    made.append(np.float32([np.inf, -np.inf, *ordinary[:7]]))
    made.append(np.full(9, -np.finfo(np.float32).max))
    made.append(np.float32([-np.inf] * 8 + [-np.finfo(np.float32).max]))
    with np.errstate(all="ignore"):
        return np.float32(made).astype(dtype)


def same(got: np.ndarray, right: np.ndarray, *, rtol: float = 1e-3, zeros: bool = False) -> np.ndarray:
    """Where two arrays agree: NaN with NaN, infinities by their sign, numbers within `rtol`; `zeros`: by their sign too.

    What is subnormal may have been flushed to zero.
    """
    if got.dtype.kind not in "fV":
        return np.asarray(got == right)
    one, other = got.astype(np.float64), right.astype(np.float64)
    tiny = float(np.finfo(np.float32).tiny)
    with np.errstate(all="ignore"):
        close = np.isclose(one, other, rtol=rtol, atol=tiny) & (np.isinf(one) == np.isinf(other))
        if zeros:
            close &= (one != 0) | (other != 0) | (np.signbit(one) == np.signbit(other))
    return np.asarray(close | (np.isnan(one) & np.isnan(other)))
