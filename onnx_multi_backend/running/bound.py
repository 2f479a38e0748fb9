# SPDX-License-Identifier: Apache-2.0
"""A run on fixed buffers: the caller fills the inputs, runs, and reads the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self

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

    def update(self, *args: Any, **named: Any) -> None:
        """Put back what is there, as ``buffers[name] = value`` does; anything else is an InputError."""
        try:
            given = dict(*args, **named)
        except (TypeError, ValueError) as error:
            raise InputError(f"update takes a mapping of names to these buffers: {error}.") from error
        for name, value in given.items():
            self[name] = value

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        """As ``buffers[name] = default``."""
        self[name] = default
        return default

    def _keep(self, *_: Any) -> NoReturn:
        raise InputError(f"The engine uses these buffers at each run, and none can be removed: {', '.join(self)}.")

    __delitem__ = pop = popitem = clear = _keep


class BoundRun:
    """What `PreparedModel.bind` returns. For one thread at a time; each thread binds its own.

    Attributes
    ----------
    inputs : dict of str to array
        The buffers that every run reads: ``bound.inputs["x"][...] = x``. An array on a device is that array.
    outputs : dict of str to array
        The buffers that every run overwrites.
    """

    __slots__ = (
        "__weakref__",
        "_after",
        "_before",
        "_buffers",
        "_converts",
        "_inputs",
        "_native_run",
        "_outputs",
        "_results",
    )

    def __init__(
        self,
        native_run: Callable[[], None],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        results: Any,
        before: Sequence[tuple[Any, Any]],
        after: Sequence[tuple[Any, Any]],
    ) -> None:
        self._inputs, self._outputs = Buffers(inputs), Buffers(outputs)
        self._buffers = (*inputs.values(), *outputs.values())  # the engine uses their memory to the end
        self._results = results
        self._native_run = native_run
        self._before, self._after = before, after
        self._converts = bool(before or after)

    @property
    def inputs(self) -> dict[str, Any]:
        """The buffers that every run reads."""
        return self._inputs

    @inputs.setter
    def inputs(self, value: Any) -> None:
        _require_same(value, self._inputs, "inputs")

    @property
    def outputs(self) -> dict[str, Any]:
        """The buffers that every run overwrites."""
        return self._outputs

    @outputs.setter
    def outputs(self, value: Any) -> None:
        _require_same(value, self._outputs, "outputs")

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


def _require_same(value: Any, buffers: Buffers, name: str) -> None:
    if value is not buffers:  # ``bound.inputs |= ...`` puts back what it took
        raise InputError(
            f"The {name} of a bound run cannot be replaced. Write into their buffers: {name}[name][...] = value; or bind again."
        )
