# SPDX-License-Identifier: Apache-2.0
"""Integer inputs, held to what the engine keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.intervals.bounds import Bound
from onnx_multi_backend.adapt.intervals.values import LIMITS
from onnx_multi_backend.engines.session import Built
from onnx_multi_backend.engines.wrappers.checked import CheckedSession
from onnx_multi_backend.errors import InputError


class Check:
    """Refuses arrays with elements out of bounds.

    Parameters
    ----------
    name : str
        The input's.
    bound : Bound
    label : str
        The model's, for the message.
    """

    def __init__(self, name: str, bound: Bound, label: str) -> None:
        self._name, self._bound, self._label = name, bound, label
        self._low, self._high = bound.low, bound.high
        self._unsigned = np.dtype(f"uint{bound.bits}")

    def __call__(self, value: Any) -> None:
        """Check one input."""
        # argmax, not max: numpy's reductions cost 45 us after a run has filled the processor's caches.
        if type(value) is np.ndarray and value.size:
            unsigned = value.view(self._unsigned)  # negative numbers are the largest
            if unsigned.item(unsigned.argmax()) > self._high:
                self._look(value)
            if self._bound.products:
                self._multiply(value)
        elif isinstance(value, (list, tuple)):
            for part in value:
                self(part)

    def _multiply(self, value: np.ndarray[Any, Any]) -> None:
        numbers = value.astype(np.float64)
        for axes in self._bound.products:
            factors = np.maximum(np.abs(numbers), 1) if axes is None else numbers  # the largest of all products
            with np.errstate(all="ignore"):
                products = factors.prod(axis=tuple(axes) if axes else None)
            beyond = products[(products < LIMITS[TensorProto.INT32][0]) | (products > LIMITS[TensorProto.INT32][1])]
            if beyond.size:
                raise InputError(
                    f"{self._label}, input {self._name!r}: a product of its elements is {beyond.item(0):.0f}, and the engine, which "
                    f"computes {value.dtype} in int32, gives correct results only within int32. Pass smaller numbers, or choose an "
                    "ONNX Runtime preset."
                )

    def _look(self, value: np.ndarray[Any, Any]) -> None:
        if value.item(value.argmax()) > self._high or value.item(value.argmin()) < self._low:
            self._refuse(value)

    def _refuse(self, array: np.ndarray[Any, Any]) -> None:
        beyond = np.argwhere((array < self._low) | (array > self._high))
        index = tuple(int(i) for i in beyond[0])
        if self._bound.rows:
            raise InputError(
                f"{self._label}, input {self._name!r}: element {list(index)} is {array[index]}, an index for a Gather beyond its data: "
                f"{self._bound.rows}. Pass indices from {self._low} to {self._high}; the engine would give zeros for others."
            )
        raise InputError(
            f"{self._label}, input {self._name!r}: element {list(index)} is {array[index]}, and the engine, which computes "
            f"{array.dtype if array.dtype.itemsize > 2 and array.dtype != np.int32 else 'int64'} in int32, gives correct results only for values from {self._low} to {self._high}{self._bound.why}. Pass "
            "smaller numbers, or choose an ONNX Runtime preset."
        )


def bounded(built: Built, bounds: Mapping[str, Iterable[Any]], label: str) -> Built:
    """The session, held to bounds where there are any; its facts hold them too."""
    if not bounds:
        return built
    checks = [(name, Check(name, Bound(*bound), label)) for name, bound in bounds.items()]
    held = CheckedSession(built.session, checks)
    facts = None if built.facts is None else {**built.facts, "bounds": dict(bounds)}
    return replace(built, session=held, facts=facts)
