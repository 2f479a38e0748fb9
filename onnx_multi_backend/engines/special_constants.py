# SPDX-License-Identifier: Apache-2.0
"""Small constants that hold NaN or inf, where an operator reads them that may lose it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.target import Lost

_T = TensorProto
FLOATS = frozenset({_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16})

_SPECIAL: Mapping[str, Callable[[np.ndarray[Any, Any]], Any]] = {"NaN": np.isnan, "inf": np.isposinf}


def special_constants(facts: Facts, lost: Lost) -> Mapping[str, str]:
    """By what is lost, "NaN" or "inf", the first small constant by name that holds it and that one of its operators reads."""
    read = {value: {name for node in facts.contents.of(*of) for name in node.input} for value, of in lost.items()}
    names = frozenset[str]().union(*read.values())
    constants = [(n, t) for n, t in facts.small_tensors(names) if t.data_type in FLOATS] if names else []
    if _are_finite(tensor for _, tensor in constants):
        return {}
    found: dict[str, str] = {}
    for value, of in read.items():
        holding = (n for n, t in constants if n in of and _SPECIAL[value](_numbers(t)).any())
        if first := min(holding, default=""):
            found[value] = first
    return found


def _are_finite(tensors: Iterable[TensorProto]) -> bool:
    """Whether no tensor holds NaN or inf. Those of float32 are looked at together where they are encoded as bytes: much quicker."""
    raw, others = [], []
    for tensor in tensors:
        data = tensor.raw_data if tensor.data_type == _T.FLOAT else b""
        if data and len(data) % 4 == 0:
            raw.append(data)
        else:
            others.append(tensor)
    together = np.frombuffer(b"".join(raw), np.float32)
    return bool(np.isfinite(together).all() and all(np.isfinite(_numbers(tensor)).all() for tensor in others))


def _numbers(tensor: TensorProto) -> np.ndarray[Any, Any]:
    try:
        array: np.ndarray[Any, Any] = numpy_helper.to_array(tensor).astype(np.float32)
    except ValueError:  # its size and its bytes disagree, which engines may accept
        return np.empty(0, np.float32)
    return array
