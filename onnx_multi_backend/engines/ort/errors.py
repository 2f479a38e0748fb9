# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's exceptions."""

from __future__ import annotations

import functools
import re
from typing import Any

from onnx_multi_backend.engines.ort import runtime


@functools.cache
def _state() -> Any:
    runtime.load()
    from onnxruntime.capi import onnxruntime_pybind11_state

    return onnxruntime_pybind11_state


@functools.cache
def all_errors() -> tuple[type[Exception], ...]:
    """Everything that ONNX Runtime's native code raises."""
    found = [c for c in vars(_state()).values() if isinstance(c, type) and issubclass(c, Exception)]
    return (*found, RuntimeError, ValueError, TypeError)


@functools.cache
def not_implemented() -> type[Exception]:
    """Raised where the engine has no kernel for an operator."""
    error: type[Exception] = _state().NotImplemented
    return error


def first_line(error: BaseException) -> str:
    """ONNX Runtime's message without its code, its source positions, and the stack that some builds append."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)).strip()
    text = re.sub(r"^Exception during (initialization|loading): ", "", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    line = re.sub(r"/\S+\.(?:cc|h):\d+ .*?\)\s(?=[A-Z\[])", "", line)
    return line[:500]
