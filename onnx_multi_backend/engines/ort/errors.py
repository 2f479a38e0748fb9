# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's exceptions."""

from __future__ import annotations

import functools
import re
from typing import Any

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.errors import shortened
from onnx_multi_backend.models.ort_format import native_errors


@functools.cache
def _state() -> Any:
    runtime.load()
    from onnxruntime.capi import onnxruntime_pybind11_state

    return onnxruntime_pybind11_state


@functools.cache
def all_errors() -> tuple[type[Exception], ...]:
    """Everything that ONNX Runtime's native code raises."""
    runtime.load()
    return native_errors()


@functools.cache
def not_implemented() -> type[Exception]:
    """Raised where the engine has no kernel for an operator."""
    error: type[Exception] = _state().NotImplemented
    return error


#: A place in the engine's sources, with the signature of a C++ function.
_SIGNATURE = re.compile(r"/\S+\.(?:cc|h):\d+ .*?\)(?:::<lambda\(\)>| const| \[with [^\]]*\])*\s")

#: What ONNX Runtime says where sizes overflow, or there is no memory for them.
_MEMORY = re.compile(r"std::bad_alloc|storage size overflowed|Integer overflow")

#: Lines that say where in the engine's sources, not what.
_NOISE = re.compile(r"^(Exception from |Check '|\[with |Stacktrace|$)")


def is_of_memory(error: BaseException) -> bool:
    """Whether a tensor is too large for the memory."""
    return bool(_MEMORY.search(str(error)))


def first_line(error: BaseException) -> str:
    """ONNX Runtime's message on one line: without its code, its source positions, and stacks."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)).strip()
    text = re.sub(r"^Exception during (initialization|loading): ", "", text)
    text = _SIGNATURE.sub("", text)
    text = re.sub(r"Exception from src/\S+:\d+:", "", text)
    told = [line.strip() for line in text.splitlines() if not _NOISE.match(line.strip())]
    return shortened(" ".join(" ".join(told).split()).rstrip(". ")) or type(error).__name__
