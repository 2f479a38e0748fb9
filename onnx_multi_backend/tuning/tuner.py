# SPDX-License-Identifier: Apache-2.0
"""The fastest way to run a model on this machine that is exact enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx_multi_backend.errors import OptionError, UnsupportedModelError
from onnx_multi_backend.host.surroundings import surroundings
from onnx_multi_backend.measuring.figures import share_text
from onnx_multi_backend.models.given import ModelLike, given
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.presets.knobs import OBJECTIVES
from onnx_multi_backend.presets.setup import MODEL
from onnx_multi_backend.tuning import machine, reference
from onnx_multi_backend.tuning.benching import check_seconds
from onnx_multi_backend.tuning.candidate import AS_GIVEN
from onnx_multi_backend.tuning.differences import Limits
from onnx_multi_backend.tuning.digest import digest_of
from onnx_multi_backend.tuning.examples import Examples, examples_of
from onnx_multi_backend.tuning.lanes import lane_maker
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.report import NOISY, Report
from onnx_multi_backend.tuning.search import Search
from onnx_multi_backend.tuning.space import Space, space_of, usable
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials
from onnx_multi_backend.tuning.tuned import Tuned
from onnx_multi_backend.tuning.variants import Variant, int8_variants

Tell = Callable[[str], None]

#: The share of the budget that the reference may take.
_FOR_REFERENCE = 0.4


def tune(
    model: ModelLike,
    input_example: Any = None,
    *,
    objective: str = "latency",
    max_error: float | None = None,
    min_cosine: float | None = None,
    budget_s: float = 60,
    data: Iterable[Any] | None = None,
    presets: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
    static_shapes: bool = False,
    processes: bool = True,
    tell: Tell = lambda _: None,
) -> Tuned:
    """Search the presets and their options for the best way to run a model here.

    Every preset starts from its defaults; the best ones are changed one option after another as long as they get better. What is clearly
    slower is dropped early; what breaks the limit on the error is never chosen. The last ones are measured again in turn, each in a new
    process, and what the report says of them is from there. Ctrl-C ends the search and keeps the best so far.

    Without a limit nothing below float32 is chosen, and results stay within float32 noise of the reference; what a limit would gain is
    measured all the same, and told.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    input_example : array, list, tuple or mapping, optional
        The input that is timed; drawn at random when None, and then results are compared on three that are drawn.
    objective : {"latency", "throughput", "memory"}
        Seconds of a run; runs per second through `run_many`; the most resident memory of a process that runs it.
    max_error : float, optional
        The largest absolute difference of any output element from the reference.
    min_cosine : float, optional
        The least cosine similarity of any output with the reference.
    budget_s : float
        Seconds for all of it, but for making int8 models.
    data : iterable, optional
        Further inputs: results are compared on the first of them too, and int8 models are calibrated on all.
    presets : sequence of str, optional
        Those to search; all that are usable here when None.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs that are drawn.
    seed : int
        Of inputs that are drawn.
    static_shapes : bool
        Whether the setup may take inputs of the example's shapes alone.
    processes : bool
        False: all runs in this process. What crashes then ends it, what hangs is not ended, and engines disturb one another.
    tell : callable
        Hears what is done, in words.

    Returns
    -------
    Tuned

    Raises
    ------
    InvalidModelError, InputError, OptionError
    UnsupportedModelError
        No preset runs the model, or none within the limits and the time.

    Notes
    -----
    The reference is OrtCpu in float32 without graph optimizations; ONNX's evaluator where OrtCpu cannot run the model.
    """
    if objective not in OBJECTIVES:
        raise OptionError(f"objective is one of {', '.join(map(repr, OBJECTIVES))}; {objective!r} was given.")
    if objective == "memory" and not processes:
        raise OptionError(
            "objective='memory' needs processes=True: memory is that of a process that does nothing else."
        )
    check_seconds("budget_s", budget_s)
    limits = Limits(max_error, min_cosine)
    started = time.monotonic()
    loaded = load(model)
    digest = digest_of(model, loaded)
    batches = None if data is None else list(data)
    examples = examples_of(loaded, input_example, batches, shapes, seed)
    quantized = is_quantized(loaded.proto)
    names, refused = usable(presets, model_is_quantized=quantized)
    if not names:
        raise UnsupportedModelError(
            f"{loaded.label}: no preset can be tried. {' '.join(f'{n}: {w}' for n, w in refused.items())}"
        )
    notes = [f"{name} was not tried: {why}" for name, why in refused.items()]
    variants: list[Variant] = []
    if batches and not quantized:
        tell("making int8 models")
        before = time.monotonic()
        variants, told = int8_variants(model, batches, names, min_cosine)
        started += (took := time.monotonic() - before)
        notes += [*told, f"Making int8 models took {took:.0f} s beside the budget."]
    tuning = _Tuning(model, loaded, digest, examples, limits, objective, float(budget_s), tell, started)
    return tuning.run(names, variants, notes, static_shapes=static_shapes, processes=processes)


class _Tuning:
    def __init__(
        self,
        model: ModelLike,
        loaded: LoadedModel,
        digest: str,
        examples: Examples,
        limits: Limits,
        objective: str,
        budget: float,
        tell: Tell,
        started: float,
    ) -> None:
        self._model, self._loaded, self._digest, self._examples = model, loaded, digest, examples
        self._started = started
        self._limits, self._objective, self._budget, self._tell = limits, objective, budget, tell

    def run(
        self,
        names: Sequence[str],
        variants: Sequence[Variant],
        notes: list[str],
        *,
        static_shapes: bool,
        processes: bool,
    ) -> Tuned:
        models: dict[str, ModelLike] = {AS_GIVEN: given(self._model).source}
        models |= {variant.name: variant.made.model.SerializeToString() for variant in variants}
        alone = self._objective == "memory"
        make_lane = lane_maker(models, self._examples.feeds, processes=processes)
        with Trials(
            make_lane,
            self._limits,
            examples=len(self._examples.feeds),
            shared=not processes,
            alone=alone,
            started=self._started,
        ) as trials:
            self._tell("computing the reference")
            right = reference.find(trials, limit=_FOR_REFERENCE * self._budget)
            trials.reference, trials.limits = right.outputs, replace(self._limits, noise=right.noise)
            search = Search(
                trials,
                self._spaces(names, variants),
                objective=self._objective,
                budget=self._budget,
                static_shapes=static_shapes,
                tell=lambda trial, best: self._tell(_words(trial, best, self._budget - trials.seconds)),
            )
            try:
                search.run()
            except KeyboardInterrupt:
                search.settle()
                if search.best is None:
                    raise
                notes.append("The search was interrupted: this is the best of what had been tried.")
            best = search.best
            if best is None:
                raise UnsupportedModelError(self._nothing(trials))
            if not search.measured_again:
                notes.append("There was no time to measure the best ones again in new processes.")
            report = self._report(trials, best, right, notes)
        made = next((v.made.model for v in variants if v.name == best.candidate.model), None)
        return Tuned(report.named(report.chosen).setup, report, made)

    def _spaces(self, names: Sequence[str], variants: Sequence[Variant]) -> list[Space]:
        dynamic = any(not isinstance(d, int) for info in self._examples.signature.inputs for d in info.shape or (None,))
        shapes = self._examples.shapes() if dynamic else None
        first = sorted(names, key=lambda name: name != "OrtCpu")  # what it differs by is noise for the others too
        spaces = [space_of(name, objective=self._objective, shapes=shapes) for name in first]
        for variant in variants:
            spaces += [
                space_of(name, objective=self._objective, shapes=shapes, model=variant.name) for name in variant.presets
            ]
        return spaces

    def _report(self, trials: Trials, best: Trial, right: reference.Reference, notes: list[str]) -> Report:
        if best.measurement().noise > NOISY:
            notes.append(
                f"The machine was noisy: times of the chosen setup differ by {share_text(best.measurement().noise)} between rounds, "
                "processes or parts of the search, so its figures are rough."
            )
        measurements = tuple(trial.measurement(best) for trial in trials.tried)
        chosen = best.candidate.name
        measured = _measured(best)
        return Report(
            kind="tune",
            model=self._loaded.label,
            model_digest=self._digest,
            machine=machine.here(),
            inputs=self._examples.described,
            examples=len(self._examples.feeds),
            random=self._examples.random,
            reference=right.words,
            limits=trials.limits,
            objective=self._objective,
            budget=self._budget,
            seconds=trials.seconds,
            measurements=tuple(
                replace(m, setup=replace(m.setup, measured_on=measured)) if m.name == chosen else m
                for m in measurements
            ),
            chosen=chosen,
            notes=(*filter(None, [right.note]), *notes),
        )

    def _nothing(self, trials: Trials) -> str:
        reasons = "; ".join(f"{t.candidate.name}: {t.reason}" for t in trials.tried if t.reason)
        words = (
            f"{self._loaded.label}: nothing that was tried runs it within {self._limits} and {self._budget:g} s. "
            f"{reasons or 'There was no time to try anything: raise budget_s.'}"
        )
        if any(t.outcome is Outcome.INACCURATE and t.candidate.float32 for t in trials.tried):
            words = f"{words.rstrip('.')}. So float32 is too inexact on these inputs: give some that the model is made for, or a looser limit."
        return words


def _measured(best: Trial) -> dict[str, str]:
    """What the setup remembers of where it was measured, and of which model, where that is not the one that was given."""
    variant = {} if best.candidate.model == AS_GIVEN else {MODEL: best.candidate.model}
    return {**surroundings(), **variant}


def _words(trial: Trial, best: Trial | None, left: float) -> str:
    seen = "" if best is None else f", best {best.median * 1e3:.3g} ms ({best.candidate.name})"
    return f"tried {trial.candidate.name}{seen}, {max(left, 0):.0f} s left"
