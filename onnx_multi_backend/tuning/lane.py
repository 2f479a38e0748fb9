# SPDX-License-Identifier: Apache-2.0
"""Prepared configurations in one process, and what can be measured of them there."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onnx_multi_backend.errors import OnnxMultiBackendError, RunError
from onnx_multi_backend.measuring.clock import WAKE, one_turn, wake
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.knobs import merged
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.tuning import memory
from onnx_multi_backend.tuning.candidate import AS_GIVEN
from onnx_multi_backend.tuning.differences import nudged

#: Runs whose profile is read.
_PROFILED = 3

#: Batches of a throughput figure at least, beyond those that start and end a stream.
_BATCHES = 8


class Prepared(NamedTuple):
    """A configuration after its first run.

    Attributes
    ----------
    prepare, first_run : float
        Seconds.
    nodes : mapping of str to int
        Nodes by execution provider.
    elsewhere : float
        The share that runs on another provider than the preset's own.
    adaptations : int
    warnings : tuple of str
    """

    prepare: float
    first_run: float
    nodes: Mapping[str, int]
    elsewhere: float
    adaptations: int
    warnings: tuple[str, ...]


class Lane:
    """Holds prepared models by keys, and times them.

    Parameters
    ----------
    models : mapping of str to model
        The variants of the model.
    examples : sequence of mappings
        Inputs; the first are those that are timed.

    Attributes
    ----------
    limit : float
        Seconds that an answer may take; nothing can be stopped here.
    starts : int
        How often what was prepared was lost, and 1.
    """

    def __init__(self, models: Mapping[str, ModelLike], examples: Sequence[Mapping[str, Any]]) -> None:
        self.limit = math.inf
        self.starts = 1
        self._models = models
        self._examples = examples
        self._prepared: dict[str, PreparedModel] = {}
        self._setups: dict[str, tuple[Setup, str]] = {}

    def load_engine(self, preset: str) -> None:
        """Import what a preset needs, so that the time it takes is not counted as the model's."""
        get_preset(preset).availability()

    def prepare(self, key: str, setup: Setup, model: str) -> Prepared:
        """Prepare a configuration without a cache, and run it once.

        Raises
        ------
        OnnxMultiBackendError
        """
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            started = time.perf_counter()
            prepared = setup.prepare(self._models[model], **_uncached(setup))
            ready = time.perf_counter()
            prepared.run(self._examples[0])
            done = time.perf_counter()
        self._prepared[key], self._setups[key] = prepared, (setup, model)
        nodes = Counter(node.provider for node in prepared.placement())
        own = nodes.get(prepared.provider, 0)
        total = nodes.total()
        told = tuple(dict.fromkeys(str(w.message) for w in heard if issubclass(w.category, UserWarning)))
        return Prepared(
            ready - started,
            done - ready,
            dict(nodes),
            (total - own) / total if total else 0.0,
            len(prepared.adaptations),
            told,
        )

    def prepare_cached(self, setup: Setup, model: str) -> float | None:
        """Seconds of a prepare from a filled cache; None where the preset keeps nothing of the model."""
        if "cache_dir" in setup.options:
            return None
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            setup.prepare(self._models[model], cache_dir=folder)
            if not any(path.is_file() for path in Path(folder).rglob("*")):
                return None
            started = time.perf_counter()
            setup.prepare(self._models[model], cache_dir=folder)
            return time.perf_counter() - started

    def outputs(self, key: str) -> tuple[list[tuple[Any, ...]], list[float]]:
        """What a configuration makes of all examples, and the seconds of each run; of the first one, of the shortest until threads are awake."""
        prepared = self._prepared[key]
        made, times = [], []
        for example in self._examples:
            started = time.perf_counter()
            results = prepared.run(example)
            times.append(time.perf_counter() - started)
            made.append(tuple(results))
        if times[0] < WAKE:
            times[0] = min(times[0], *one_turn(lambda: prepared.run(self._examples[0]), WAKE))
        return made, times

    def again(self, key: str) -> tuple[Any, ...]:
        """What a configuration makes of the first example."""
        return tuple(self._prepared[key].run(self._examples[0]))

    def nudged(self, key: str) -> tuple[Any, ...]:
        """What a configuration makes of the first example with the last bits of its numbers changed."""
        return tuple(self._prepared[key].run({name: nudged(value) for name, value in self._examples[0].items()}))

    def latency(self, key: str, seconds: float, warm_up: float) -> list[float]:
        """Run for some time, after some seconds of runs that are not counted, and return the seconds of each run."""
        prepared, example = self._prepared[key], self._examples[0]
        if warm_up:
            wake(lambda: prepared.run(example), warm_up)
        return one_turn(lambda: prepared.run(example), seconds)

    def throughput(self, key: str, seconds: float, latency: float) -> float:
        """Runs per second through `run_many`, from when as many are under way as there will be."""
        prepared = self._prepared[key]
        count = max(_BATCHES, round(seconds / max(latency, 1e-6)))
        # The first runs go one after another, then the pool fills, and its threads find their processors.
        under_way = max(16 if latency < 0.05 else 5, round(WAKE / max(latency, 1e-6)))
        results = prepared.run_many(itertools.repeat(self._examples[0], count + under_way))
        for _ in itertools.islice(results, under_way):
            pass
        started = time.perf_counter()
        done = sum(1 for _ in results)
        return done / (time.perf_counter() - started)

    def elsewhere_time(self, key: str) -> float | None:
        """The share of the time that nodes off the preset's own provider take; None where the engine has no profile."""
        setup, model = self._setups[key]
        if not any(option.name == "session_options" for option in get_preset(setup.preset).family_options):
            return None
        with tempfile.TemporaryDirectory() as folder:
            profiling = {"enable_profiling": True, "profile_file_prefix": str(Path(folder) / "profile")}
            options = merged(setup.to_json()["options"], {"session_options": profiling})
            profiled = Setup(setup.preset, setup.device, options).prepare(self._models[model], **_uncached(setup))
            for _ in range(_PROFILED):
                profiled.run(self._examples[0])
            events = json.loads(Path(profiled.end_profiling()).read_text(encoding="utf-8"))
            own = profiled.provider
        return _share_elsewhere(events, own)

    def memory(self) -> int | None:
        """The most resident memory of this process so far, in bytes."""
        return memory.peak()

    def evaluate(self, count: int) -> list[tuple[Any, ...]]:
        """What ONNX's reference evaluator makes of the first examples.

        Raises
        ------
        RunError
        """
        from onnx.reference import ReferenceEvaluator

        model = load(self._models[AS_GIVEN]).with_all_weights()
        try:
            evaluator = ReferenceEvaluator(model)
            return [tuple(evaluator.run(None, dict(example))) for example in self._examples[:count]]
        except Exception as error:  # it is Python, and raises whatever numpy does
            raise RunError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Let go of everything."""
        self._prepared.clear()
        self._setups.clear()

    def drop(self, key: str) -> None:
        """Let go of a configuration."""
        self._prepared.pop(key, None)
        self._setups.pop(key, None)


def _uncached(setup: Setup) -> dict[str, Any]:
    return {} if "cache_dir" in setup.options else {"cache_dir": False}


def _share_elsewhere(events: Sequence[Mapping[str, Any]], own: str) -> float | None:
    """Of ONNX Runtime's profile: the kernels' times by provider."""
    own_time = other_time = 0.0
    for provider, took in _kernels(events):
        if provider.startswith(own):
            own_time += took
        else:
            other_time += took
    total = own_time + other_time
    return other_time / total if total else None


def _kernels(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    for event in events:
        provider = event.get("args", {}).get("provider")
        if event.get("cat") == "Node" and provider and str(event.get("name", "")).endswith("_kernel_time"):
            yield provider, float(event["dur"])


def why(error: OnnxMultiBackendError) -> str:
    """An error in a line."""
    return " ".join(str(error).split()) or type(error).__name__
