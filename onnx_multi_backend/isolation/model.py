# SPDX-License-Identifier: Apache-2.0
"""What `prepare` returns with ``isolate=True``."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Built, Feeds, Session, Value
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import DeviceError, OptionError, OptionTypeError, RunError
from onnx_multi_backend.isolation.host import Host
from onnx_multi_backend.models.origin import Origin
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.running.recipe import Recipe

#: Options that are settled in the user's process, not in the one that runs the model.
_OWN = ("isolate", "time_limit")


class IsolatedModel(PreparedModel):
    """A model in a process of its own. It serves one run at a time; runs of several threads wait for one another.

    The process ends with `close`, at the end of a ``with`` block, or when nothing refers to the model any more.
    """

    def __init__(self, preset: str, recipe: Recipe, time_limit: float | None) -> None:
        inner = replace(recipe, options={k: v for k, v in recipe.options.items() if k not in _OWN})
        _check_travels(preset, inner)
        self._host = host = Host(preset, inner, time_limit)
        facts = host.facts
        super().__init__(
            preset,
            _Elsewhere(preset, facts.provider),
            _Maker(host),
            recipe,
            fixed_shapes=False,
            input_example=None,
        )
        self.device = facts.device

    @property
    def pid(self) -> int | None:
        """The id of the process that runs the model; None while there is no process."""
        return self._host.pid

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node runs: asked for each time, since another provider may have taken over."""
        placed: tuple[NodePlacement, ...] = self._host.call("placement")
        return placed

    def get_providers(self) -> list[str]:
        """The execution providers that the session holds, by priority."""
        providers: list[str] = self._host.call("get_providers")
        return providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each execution provider."""
        options: dict[str, dict[str, str]] = self._host.call("get_provider_options")
        return options

    def end_profiling(self) -> str:
        """End the profile that session options began; see `PreparedModel.end_profiling`."""
        name: str = self._host.call("end_profiling")
        return name

    def set_providers(self, names: Sequence[Any], options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Prepare the model again on other execution providers; see `PreparedModel.set_providers`."""
        facts = self._host.set_providers(names, options)
        self.provider, self.device, self.adaptations = facts.provider, facts.device, facts.adaptations
        self._recipe = replace(self._recipe, providers=facts.providers)

    def close(self) -> None:
        """End the process. A run after that is a RunError; results of earlier runs stay valid."""
        self._host.close()
        super().close()


class _Session(Session):
    """A session whose engine is in another process."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        return self._host.run(feeds, run_options, _copies)

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """Results come to the host alone."""
        if device not in (None, "CPU"):
            raise DeviceError(
                f"output_device={device!r}: the model runs in another process, whose results on a device cannot be handed over. "
                "Leave output_device out, or prepare without isolate."
            )
        return self.run(feeds, run_options)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Copies the buffers there and back at each run."""

        def write(results: list[Value]) -> None:
            for buffer, result in zip(outputs, results, strict=True):
                if buffer is not None:
                    if buffer.shape != result.shape:
                        raise RunError(
                            f"An output has shape {result.shape} by now, and its buffer {buffer.shape}. Bind again, or use run."
                        )
                    buffer[...] = result

        def bound() -> None:
            self._host.run(inputs, None, write)

        return bound

    def placement(self) -> tuple[NodePlacement, ...]:
        placed: tuple[NodePlacement, ...] = self._host.call("placement")
        return placed


def _copies(values: list[Value]) -> list[Value]:
    return [value.copy() if type(value) is np.ndarray else value for value in values]


class _Maker:
    """Makes the one session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.signature = host.facts.signature

    @property
    def origin(self) -> Origin:
        return self._host.facts.origin

    def for_nothing(self, target: Target, shapes: Any) -> None:
        """The other process makes those."""

    def for_shapes(self, target: Target, shapes: Any, values: Any = None) -> Built:
        """The other process makes those."""
        return self(target)

    def deciding(self) -> frozenset[str]:
        """The other process knows those."""
        return frozenset()

    def __call__(self, target: Target, shapes: Any = None) -> Built:
        return Built(_Session(self._host), self._host.facts.adaptations)


@dataclass(frozen=True)
class _Elsewhere(Target):
    """Stands for the target that is in the other process: one that shares the host's memory and serves one run at a time."""

    provider: str

    @property
    def requested(self) -> tuple[str, ...]:
        return (self.provider,)

    def check_run_options(self, given: object) -> None:
        """The engine's own objects stay in their process."""
        raise OptionTypeError(
            f"{self.preset}: with {option_words.given('isolate', True)} run_options is a mapping of names to values, which can be handed "
            f"to the other process; {type(given).__name__} was given."
        )


def _check_travels(preset: str, recipe: Recipe) -> None:
    owner = getattr(recipe.prepare, "__self__", recipe.prepare)
    if owner.__module__ == "__main__":
        raise OptionError(
            f"{preset}: {option_words.given('isolate', True)} prepares the model in a new process, which cannot import a preset from the main script. "
            "Put the class into a module."
        )
    for name, value in recipe.options.items():
        try:
            pickle.dumps(value)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise OptionTypeError(
                f"{preset}: {name} cannot be handed to the process that {option_words.given('isolate', True)} starts: {error}. Pass plain values (for "
                "session_options a mapping of names to values), or leave isolate out."
            ) from error
