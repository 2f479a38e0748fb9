# SPDX-License-Identifier: Apache-2.0
"""What of ONNX Runtime's Python classes is not public, and the public way for when it is gone: slower, and as right."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from onnx_multi_backend.engines.ort import runtime


def run_of(session: Any) -> Callable[..., Any]:
    """The session's ``run``, without the Python around it, which repeats checks that are done before."""
    inner = getattr(session, "_sess", None)
    method: Callable[..., Any] = session.run if inner is None else inner.run
    return method


def bound_run_of(session: Any, binding: Any) -> Callable[[Any], None]:
    """Runs a session on a binding; takes the run options."""
    inner, bound = getattr(session, "_sess", None), getattr(binding, "_iobinding", None)
    if inner is None or bound is None:
        return functools.partial(session.run_with_iobinding, binding)
    return functools.partial(inner.run_with_iobinding, bound)


def let_go_of_bytes(session: Any) -> None:
    """Drop the model that a session keeps for its own ``set_providers``: its weights, a second time."""
    if hasattr(session, "_model_bytes"):
        session._model_bytes = None


def dlpack_of(value: Any) -> Any:
    """What of an OrtValue supports DLPack: before ONNX Runtime 1.31 the native value alone."""
    return value if hasattr(value, "__dlpack__") else value._ortvalue


def value_from_dlpack(array: Any, *, boolean: bool) -> Any:
    """An OrtValue that shares the memory of anything that supports DLPack.

    ONNX Runtime reads booleans as bytes alone (seen with 1.24 to 1.32), and DLPack has had a type of theirs since its version 0.8.
    """
    ort_value = runtime.load().OrtValue
    if (
        hasattr(ort_value, "from_dlpack") and not boolean
    ):  # since ONNX Runtime 1.31; it does not take bytes for booleans
        return ort_value.from_dlpack(array)
    from onnxruntime.capi import _pybind_state

    shown = _as_bytes(array) if boolean else array
    return ort_value(_pybind_state.OrtValue.from_dlpack(shown.__dlpack__(), boolean))


def _as_bytes(array: Any) -> Any:
    """Booleans as bytes in the same memory, where their library can show them so, as PyTorch, CuPy and numpy can."""
    view, library = getattr(array, "view", None), sys.modules.get(type(array).__module__.partition(".")[0])
    uint8 = getattr(library, "uint8", None)
    return array if view is None or uint8 is None else view(uint8)
