# SPDX-License-Identifier: Apache-2.0
"""A machine whose times are known: the search is held to what is best on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onnx_multi_backend.errors import RunError
from onnx_multi_backend.presets.knobs import Choice, Knob
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.candidate import Candidate
from onnx_multi_backend.tuning.lane import Prepared
from onnx_multi_backend.tuning.space import Space

#: Seconds of a run by the options of a setup; None: it does not run.
Times = Callable[[str, Mapping[str, Any]], float | None]


class SimulatedLane:
    """Tells times instead of taking them: each with noise, and a machine that becomes slower and faster meanwhile.

    Parameters
    ----------
    factor : float
        How many times as long as in other processes all runs take in this one.
    drift : float
        By what share the machine becomes slower and faster.

    Attributes
    ----------
    now : list of float
        The time on that machine: one figure, which all its lanes share.
    """

    def __init__(
        self,
        times: Times,
        noise: float,
        errors: Times,
        now: list[float] | None = None,
        *,
        factor: float = 1.0,
        drift: float = 0.3,
    ) -> None:
        self.limit = 0.0
        self.starts = 1
        self._times, self._noise, self._errors = times, noise, errors
        self._random = np.random.default_rng(0)
        self._factor, self._drift = factor, drift
        self._setups: dict[str, Setup] = {}
        self.runs = 0
        self.now = now if now is not None else [0.0]
        self._started = False

    def load_engine(self, preset: str) -> None:
        self.now[0] += 0.0 if self._started else 0.5
        self._started = True

    def prepare(self, key: str, setup: Setup, model: str) -> Prepared:
        if self._seconds(setup) is None:
            raise RunError(f"{setup.preset} does not run")
        self._setups[key] = setup
        first = self.latency(key, 0, 0)[0]
        self.now[0] += 0.1
        return Prepared(0.1, first, {}, 0.0, 0, ())

    def prepare_cached(self, setup: Setup, model: str) -> float | None:
        return None

    def outputs(self, key: str) -> tuple[list[tuple[Any, ...]], list[float]]:
        setup = self._setups[key]
        error = self._errors(setup.preset, setup.options) or 0.0
        return [(np.array([1.0 + error, 2.0]),)], self.latency(key, 0, 0)

    def latency(self, key: str, seconds: float, warm_up: float) -> list[float]:
        self.runs += 1
        drift = self._factor * (1 + self._drift * np.sin(self.runs / 40))
        base = self._seconds(self._setups[key])
        assert base is not None
        count = max(1, round(seconds / base)) if seconds else 1
        times = [base * drift * float(np.exp(self._random.normal(0, self._noise))) for _ in range(count)]
        self.now[0] += sum(times) + (max(warm_up, base) if warm_up else 0.0)
        return times

    def throughput(self, key: str, seconds: float, latency: float) -> float:
        return 1 / self.latency(key, seconds, 0)[0]

    def elsewhere_time(self, key: str) -> float | None:
        return None

    def memory(self) -> int | None:
        return None

    def again(self, key: str) -> tuple[Any, ...]:
        return (np.array([1.0, 2.0]),)

    def nudged(self, key: str) -> tuple[Any, ...]:
        return (np.array([1.0, 2.0]),)

    def evaluate(self, count: int) -> list[tuple[Any, ...]]:
        return [(np.array([1.0, 2.0]),)]

    def drop(self, key: str) -> None:
        del self._setups[key]

    def close(self) -> None:
        pass

    def _seconds(self, setup: Setup) -> float | None:
        return self._times(setup.preset, setup.options)


def space(
    preset: str, knobs: Mapping[str, tuple[Any, ...]], loose: Mapping[str, tuple[Any, ...]] | None = None
) -> Space:
    """Knobs of the given names and values; `loose` ones compute in less than float32."""
    made = [Knob(name, tuple(_choice(name, value, float32=True) for value in values)) for name, values in knobs.items()]
    made += [Knob(n, tuple(_choice(n, value, float32=False) for value in vs)) for n, vs in (loose or {}).items()]
    return Space(Candidate(Setup(preset)), tuple(made))


def _choice(name: str, value: Any, *, float32: bool) -> Choice:
    return Choice(f"{name}={json.dumps(value)}", {name: value}, float32)
