# SPDX-License-Identifier: Apache-2.0
"""A session that holds integer inputs to what its engine keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_multi_backend.adapt.bounds import Bound
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Built, Feeds, Session, Value
from onnx_multi_backend.errors import InputError


class BoundedSession(Session):
    """Checks the inputs of each run, and hands it to the session behind.

    Only inputs with bounds are looked at, each once: models without them have no such session.
    """

    def __init__(self, session: Session, bounds: Mapping[str, Bound], label: str) -> None:
        self._session = session
        self._run = session.run
        self._checks = [(name, Check(name, bound, label)) for name, bound in bounds.items()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def in_flight(self) -> int:
        return self._session.in_flight

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Check the inputs, and run.

        Raises
        ------
        InputError
            An element is out of bounds.
        """
        for name, check in self._checks:
            check(feeds.get(name))
        return self._run(feeds, run_options)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """As `run`."""
        for name, check in self._checks:
            if name in feeds:
                check(feeds[name])
        return self._session.run_to_device(feeds, run_options, device)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run that checks the buffers first."""
        run = self._session.bind(inputs, outputs)
        checks = [(check, inputs[name]) for name, check in self._checks if name in inputs]

        def bound() -> None:
            for check, array in checks:
                check(array)
            run()

        return bound

    def placement(self) -> tuple[NodePlacement, ...]:
        return self._session.placement()

    def get_providers(self) -> list[str]:
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self._session.get_provider_options()

    def end_profiling(self) -> str:
        return self._session.end_profiling()


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
        self._unsigned = np.dtype(np.uint32 if bound.bits == 32 else np.uint64)

    def __call__(self, value: Any) -> None:
        """Check one input."""
        # argmax, not max: numpy's reductions cost 45 us after a run has filled the processor's caches.
        if type(value) is np.ndarray and value.size:
            unsigned = value.view(self._unsigned)  # negative numbers are the largest
            if unsigned.item(unsigned.argmax()) > self._high:
                self._look(value)
        elif isinstance(value, (list, tuple)):
            for part in value:
                self(part)

    def _look(self, value: np.ndarray[Any, Any]) -> None:
        if value.item(value.argmax()) > self._high or value.item(value.argmin()) < self._low:
            self._refuse(value)

    def _refuse(self, array: np.ndarray[Any, Any]) -> None:
        beyond = np.argwhere((array < self._low) | (array > self._high))
        index = tuple(int(i) for i in beyond[0])
        raise InputError(
            f"{self._label}, input {self._name!r}: element {list(index)} is {array[index]}, and the engine, which computes "
            f"{array.dtype} in int32, gives correct results only for values from {self._low} to {self._high}{self._bound.why}. Pass "
            "smaller numbers, or choose an ONNX Runtime preset."
        )


def bounded(built: Built, bounds: Mapping[str, Iterable[Any]], label: str) -> Built:
    """The session, held to bounds where there are any; its facts tell them too."""
    if not bounds:
        return built
    held = BoundedSession(built.session, {name: Bound(*bound) for name, bound in bounds.items()}, label)
    facts = None if built.facts is None else {**built.facts, "bounds": dict(bounds)}
    return replace(built, session=held, facts=facts)
