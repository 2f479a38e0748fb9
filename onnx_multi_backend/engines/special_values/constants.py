# SPDX-License-Identifier: Apache-2.0
"""Small constants that hold NaN, inf or large numbers, where they come to an operator that may lose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.special_values.flows import computed_into, infinities_into, moved_into
from onnx_multi_backend.engines.special_values.nan_sources import OF_INFINITY
from onnx_multi_backend.engines.target import LARGE_NUMBERS, Lost
from onnx_multi_backend.models.contents import Contents

_T = TensorProto
FLOATS = frozenset({_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16})

#: From here on numbers are large, by type: the square of a larger one may be infinite in float32.
LARGE: Mapping[int, float] = {_T.FLOAT: 1e18, _T.DOUBLE: 1e18, _T.BFLOAT16: 1e18, _T.FLOAT16: 3e4}


def special_constants(facts: Facts, lost: Lost) -> Mapping[str, str]:
    """By what is lost, one of `Lost`, the first small constant by name that holds it and comes to one of its operators."""
    if not lost:
        return {}
    constants = [(n, t) for n, t in facts.small if t.data_type in FLOATS]
    if _are_ordinary(tensor for _, tensor in constants):
        return {}
    special = [(n, t) for n, t in constants if not _within(_numbers(t), t.data_type)]
    found: dict[str, str] = {}
    for value in ("NaN", "inf", LARGE_NUMBERS):
        holders = {n for n, t in special if _holds(value, t)}
        if holders and (first := min(holders & _coming(facts.contents, lost, value), default="")):
            found[value] = first
    return found


def _coming(contents: Contents, lost: Lost, value: str) -> frozenset[str]:
    """The names of what comes to the operators that lose a value."""
    readers = contents.of(*lost.get(value, ()))
    if value == LARGE_NUMBERS:
        return moved_into(contents, readers)
    if value == "NaN":
        return computed_into(contents, readers)
    nan = computed_into(
        contents, contents.of(*lost.get("NaN", ()))
    )  # nodes may make NaN of inf, which is lost behind them
    makers = [node for node in contents.of(*OF_INFINITY) if not nan.isdisjoint(node.output)]
    return infinities_into(contents, [*readers, *makers])


def _holds(value: str, tensor: TensorProto) -> bool:
    numbers = _numbers(tensor)
    if value == "NaN":
        return bool(np.isnan(numbers).any())
    if value == "inf":
        return bool(np.isposinf(numbers).any())
    return bool((np.abs(numbers[np.isfinite(numbers)]) >= LARGE[tensor.data_type]).any())


def _are_ordinary(tensors: Iterable[TensorProto]) -> bool:
    """Whether no tensor holds NaN, inf or large numbers. Those of float32 are looked at together where they are encoded as bytes."""
    raw, others = [], []
    for tensor in tensors:
        data = tensor.raw_data if tensor.data_type == _T.FLOAT else b""
        if data and len(data) % 4 == 0:
            raw.append(data)
        else:
            others.append(tensor)
    together = np.frombuffer(b"".join(raw), np.float32)
    return _within(together, _T.FLOAT) and all(_within(_numbers(tensor), tensor.data_type) for tensor in others)


def _within(numbers: np.ndarray[Any, Any], kind: int) -> bool:
    return bool((np.abs(numbers) < LARGE[kind]).all())


def _numbers(tensor: TensorProto) -> np.ndarray[Any, Any]:
    data = tensor.raw_data if tensor.data_type == _T.FLOAT else b""
    if data and len(data) % 4 == 0:  # quicker, for there are many
        return np.frombuffer(data, np.float32)
    try:
        with np.errstate(over="ignore"):  # of float64
            array: np.ndarray[Any, Any] = numpy_helper.to_array(tensor).astype(np.float32)
    except ValueError:  # its size and its bytes disagree, which engines may accept
        return np.empty(0, np.float32)
    return array
