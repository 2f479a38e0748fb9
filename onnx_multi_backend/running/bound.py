# SPDX-License-Identifier: Apache-2.0
"""A run on fixed buffers: the caller fills the inputs, runs, and reads the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.errors import InputError


class Buffers(dict[str, Any]):
    """Arrays by name, each at its place for good."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self or value is not self[name]:  # ``buffers["x"] += 1`` puts back what it took
            raise InputError(
                f"The buffer of {name!r} cannot be replaced by another array. Write into it: buffers[{name!r}][...] = value."
                if name in self
                else f"There is no buffer {name!r}; there are {', '.join(map(repr, self))}."
            )


class BoundRun:
    """What `PreparedModel.bind` returns. For one thread at a time; each thread binds its own.

    Attributes
    ----------
    inputs : dict of str to array
        The buffers that every run reads: ``bound.inputs["x"][...] = x``. An array on a device is that array.
    outputs : dict of str to array
        The buffers that every run overwrites.
    """

    __slots__ = ("__weakref__", "_after", "_before", "_converts", "_native_run", "_results", "inputs", "outputs")

    def __init__(
        self,
        native_run: Callable[[], None],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        results: Any,
        before: Sequence[tuple[Any, Any]],
        after: Sequence[tuple[Any, Any]],
    ) -> None:
        self.inputs = Buffers(inputs)
        self.outputs = Buffers(outputs)
        self._results = results
        self._native_run = native_run
        self._before, self._after = before, after
        self._converts = bool(before or after)

    def close(self, refuse: Callable[[], None]) -> None:
        """Let go of the engine's session; a run is what `refuse` raises from now on."""
        self._native_run = refuse

    def run(self) -> Any:
        """Run once on what the input buffers hold.

        Returns
        -------
        named tuple
            The output buffers, the same at every run. Copy what must outlive the next run.

        Raises
        ------
        RunError
            The engine failed.
        """
        if not self._converts:
            self._native_run()
            return self._results
        for given, engines in self._before:
            engines[...] = given
        self._native_run()
        for engines, wanted in self._after:
            wanted[...] = engines
        return self._results
