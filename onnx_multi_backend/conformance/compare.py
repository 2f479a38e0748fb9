# SPDX-License-Identifier: Apache-2.0
"""Comparing what a backend returned with what ONNX expects, all of it.

Arrays are left to ONNX's own comparison. What holds them is compared here, because the stock runner compares nested
sequences only as far as the shorter one goes, takes each of their elements for a sequence of outputs, and knows neither
an empty optional nor a map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

CompareArrays = Callable[[Any, Any], None]


def assert_similar(expected: Any, actual: Any, compare_arrays: CompareArrays, where: str) -> None:
    """Compare one output: an array, a sequence, a map, or None for an empty optional.

    Parameters
    ----------
    expected, actual : Any
        What ONNX expects, and what the backend returned.
    compare_arrays : callable
        Called with the expected and the actual array wherever both sides have one.
    where : str
        Which output this is, for the messages.

    Raises
    ------
    AssertionError
        The two differ in structure or in a value.
    """
    if _form(expected) != _form(actual):
        raise AssertionError(f"{where} is {_form(actual)} ({type(actual).__name__}), expected {_form(expected)}")
    if expected is None:
        return
    if isinstance(expected, list | tuple):
        if len(expected) != len(actual):
            raise AssertionError(f"{where} has {len(actual)} elements, expected {len(expected)}")
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            assert_similar(e, a, compare_arrays, f"{where}[{i}]")
    elif isinstance(expected, Mapping):
        if set(expected) != set(actual):
            raise AssertionError(f"{where} has the keys {sorted(actual)}, expected {sorted(expected)}")
        for key in expected:
            assert_similar(_as_array(expected[key]), _as_array(actual[key]), compare_arrays, f"{where}[{key!r}]")
    else:
        compare_arrays(expected, actual)


def _form(value: Any) -> str:
    if value is None:
        return "an empty optional"
    if isinstance(value, list | tuple):
        return "a sequence"
    return "a map" if isinstance(value, Mapping) else "a tensor"


def _as_array(value: Any) -> Any:
    """Give a map's plain value a dtype: ORT returns Python floats for the float32 values of a map."""
    if isinstance(value, str | bytes):
        return np.array(value, dtype=object)
    return np.array(value, dtype=np.float32) if isinstance(value, float | np.floating) else np.asarray(value)
