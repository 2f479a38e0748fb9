# SPDX-License-Identifier: Apache-2.0
"""Every usable preset on the same inputs, side by side."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.errors import DeviceUnavailableError, OptionError, OptionTypeError
from onnx_multi_backend.models.given import ModelLike, given
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning import machine, reference
from onnx_multi_backend.tuning.candidate import AS_GIVEN, Candidate
from onnx_multi_backend.tuning.contest import Contest
from onnx_multi_backend.tuning.differences import Limits
from onnx_multi_backend.tuning.digest import digest_of
from onnx_multi_backend.tuning.examples import examples_of
from onnx_multi_backend.tuning.lanes import lane_maker
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.report import Report
from onnx_multi_backend.tuning.space import space_of, usable
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials

#: Seconds that a model may take to be prepared or run, before its process is ended.
_HANGS = 600.0

#: Rounds of throughput, and the seconds of a run from which one has to do.
_THROUGHPUT_ROUNDS, _LONG = 5, 0.2


def bench(
    model: ModelLike,
    input_example: Any = None,
    *,
    presets: Sequence[str | Setup] | None = None,
    data: Iterable[Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    seconds: float = 20.0,
    processes: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure presets side by side: how long they take, how much memory, and how exact they are.

    Each runs in a process of its own. They are timed in turn, in short rounds, until it is clear which is faster, or the time is up. What
    `PreparedModel.run` does is timed as a whole, copies included.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    input_example : array, list, tuple or mapping, optional
        Drawn at random when None.
    presets : sequence of str or Setup, optional
        All that are usable here when None.
    data : iterable, optional
        Further inputs that results are compared on; eight in all at most.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs that are drawn.
    seed : int
        Of inputs that are drawn.
    threads : int, optional
        For every preset that can be told; each preset's own default when None.
    seconds : float
        For the rounds in turn, at most, the last ones of them in new processes. Preparing and the throughput come on top.
    processes : bool
        False: all run in this process. Their threads disturb one another then, and memory is not told.
    tell : callable
        Hears what is done, in words.

    Returns
    -------
    Report
        A preset that fails is a row with its reason.

    Raises
    ------
    InvalidModelError, InputError, OptionError
    DeviceUnavailableError
        No preset is usable.
    """
    check_seconds("seconds", seconds)
    loaded = load(model)
    examples = examples_of(loaded, input_example, data, shapes, seed)
    candidates, refused = _candidates(presets, threads, loaded)
    models = {AS_GIVEN: given(model).source}
    make_lane = lane_maker(models, examples.feeds, processes=processes)
    with Trials(make_lane, Limits(), examples=len(examples.feeds), shared=not processes, alone=processes) as trials:
        tell("computing the reference")
        right = reference.find(trials, limit=_HANGS)
        trials.reference = right.outputs
        tried = []
        for candidate in candidates:
            tell(f"preparing {candidate.name}")
            tried.append(trials.try_out(candidate, limit=_HANGS, judged=False))
        _measure(trials, tried, seconds, tell)
        return Report(
            kind="bench",
            model=loaded.label,
            model_digest=digest_of(model, loaded),
            machine=machine.here(),
            inputs=examples.described,
            examples=len(examples.feeds),
            random=examples.random,
            reference=right.words,
            limits=Limits(),
            objective="latency",
            budget=math.inf,
            seconds=trials.seconds,
            measurements=(*(trial.measurement() for trial in tried), *refused),
            notes=tuple(filter(None, [right.note])),
        )


def _measure(trials: Trials, tried: Sequence[Trial], seconds: float, tell: Callable[[str], None]) -> None:
    end = trials.seconds + seconds
    tell("timing in turns")
    Contest(trials, "latency", lambda: max(end - trials.seconds, 0.0)).final(tried)
    for trial in tried:
        if trial.alive and not trial.latency:  # a round takes longer than there were seconds: one is due
            trials.turn(trial, limit=_HANGS)
    tell("looking closer")
    for trial in tried:
        if trial.alive:
            trials.look_closer(trial, limit=_HANGS)
    tell("measuring the throughput")
    for i in range(_THROUGHPUT_ROUNDS):
        for trial in tried:
            if trial.alive and (i == 0 or trial.median < _LONG):
                trials.turn(trial, limit=_HANGS, throughput=True)


def _candidates(
    presets: Sequence[str | Setup] | None, threads: int | None, loaded: LoadedModel
) -> tuple[list[Candidate], list[Measurement]]:
    quantized = is_quantized(loaded.proto)
    setups = {s.preset: s for s in presets or () if isinstance(s, Setup)}
    given_names = (
        presets
        if presets is None or isinstance(presets, str)
        else [p.preset if isinstance(p, Setup) else p for p in presets]
    )
    names, refused = usable(given_names, model_is_quantized=quantized)
    if not names and not refused:
        raise DeviceUnavailableError(
            "No preset is usable here. `onnx-multi-backend presets` says why, and what to install."
        )
    made: list[Candidate] = []
    for item in presets if presets is not None else names:
        preset = item.preset if isinstance(item, Setup) else get_preset(item).name
        if preset not in names:
            continue
        if isinstance(item, Setup):
            words = tuple(f"{name}={value}" for name, value in item.options.items())
            made.append(Candidate(item, words))
            continue
        candidate = space_of(preset, objective="latency").start
        made.append(_with_threads(candidate, threads))
    failed = [
        Measurement(name, setups.get(name, Setup(name)), outcome=Outcome.FAILED, reason=reason)
        for name, reason in refused.items()
    ]
    return list({c.key: c for c in made}.values()), failed


def _with_threads(candidate: Candidate, threads: int | None) -> Candidate:
    if threads is None:
        return candidate
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads is a number of threads, at least 1; {threads!r} was given.")
    return space_of(candidate.setup.preset, objective="latency", cpus=threads).with_threads()


def check_seconds(name: str, value: Any) -> None:
    """Hold a number of seconds to what it can be.

    Raises
    ------
    OptionError
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionTypeError(f"{name} is a number of seconds; {value!r} was given.")
    if not 0 < float(value) < math.inf:
        raise OptionError(f"{name} is a number of seconds above 0; {value} was given.")
