# SPDX-License-Identifier: Apache-2.0
"""Which configurations there are: presets, and the values of their options that are worth trying."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx_multi_backend.errors import OptionError, OptionTypeError, PresetWarning
from onnx_multi_backend.host import processor
from onnx_multi_backend.host.cpus import usable as usable_cpus
from onnx_multi_backend.presets.base import Preset
from onnx_multi_backend.presets.knobs import THREADS, Choice, Host, Knob, merged
from onnx_multi_backend.presets.options import REQUIRED
from onnx_multi_backend.presets.registry import BUILT_IN, PART_OF, availability, get_preset
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.candidate import AS_GIVEN, Candidate
from onnx_multi_backend.user_warnings import warn

#: The knob that fixes the shapes of inputs, which every preset has.
SHAPES = "shapes"


@dataclass(frozen=True)
class Space:
    """What may be tried of one preset on one variant of the model.

    Attributes
    ----------
    start : Candidate
        The preset's defaults.
    knobs : tuple of Knob
    """

    start: Candidate
    knobs: tuple[Knob, ...]

    def neighbours(self, candidate: Candidate) -> list[Candidate]:
        """Candidates that differ in one knob."""
        chosen = dict(candidate.choices)
        found = [self.with_choice(candidate, knob, choice) for knob in self.knobs for choice in knob.choices]
        found += [self.made({k: v for k, v in chosen.items() if k != name}) for name in chosen]
        return [c for c in found if c.key != candidate.key]

    def with_choice(self, candidate: Candidate, knob: Knob, choice: Choice) -> Candidate:
        """A candidate with one knob set, in place of its earlier choice."""
        chosen = {name: label for name, label in candidate.choices if name != knob.name}
        return self.made({**chosen, knob.name: choice.label})

    def with_threads(self) -> Candidate:
        """The defaults, with as many threads as there are CPUs to use, where the preset can be told."""
        for knob in self.knobs:
            if knob.name == THREADS and knob.choices:
                return self.with_choice(self.start, knob, knob.choices[0])
        return self.start

    def made(self, labels: Mapping[str, str]) -> Candidate:
        """The candidate with some choices, by the names of their knobs."""
        options: Mapping[str, Any] = self.start.setup.to_json()["options"]
        words: list[str] = []
        float32, any_shape = self.start.float32, self.start.any_shape
        for knob in self.knobs:
            for choice in knob.choices:
                if labels.get(knob.name) == choice.label:
                    options = merged(options, choice.options)
                    words.append(choice.label)
                    float32 = float32 and choice.float32
                    any_shape = any_shape and knob.name != SHAPES
        start = self.start
        return replace(
            start,
            setup=Setup(start.setup.preset, start.setup.device, options),
            words=tuple(words),
            float32=float32,
            any_shape=any_shape,
            choices=frozenset(labels.items()),
        )

    def everything(self) -> Iterator[Candidate]:
        """All combinations: for comparing a search with an exhaustive one."""
        names = [knob.name for knob in self.knobs]
        for labels in itertools.product(*([None, *(c.label for c in knob.choices)] for knob in self.knobs)):
            yield self.made({name: label for name, label in zip(names, labels, strict=True) if label is not None})


def usable(presets: Sequence[str] | None, *, model_is_quantized: bool) -> tuple[list[str], dict[str, str]]:
    """The presets that a search tries, and why not the others that were named.

    Parameters
    ----------
    presets : sequence of str, optional
        Those that the user names; without them, all that are usable here and are not a part of another.

    Returns
    -------
    list of str, dict of str to str
    """
    if isinstance(presets, str):
        raise OptionTypeError(f"presets is a list of names; {presets!r} was given. Write [{presets!r}].")
    if presets is not None and not presets:
        raise OptionError("presets is an empty list. Leave it out for all that are usable here.")
    if presets is not None:
        names = [get_preset(name).name for name in dict.fromkeys(presets)]
        states = {name: get_preset(name).availability() for name in names}
    else:
        states = availability()
        names = [
            name
            for name, state in states.items()
            if state.usable
            and (
                name not in PART_OF
                or not states[PART_OF[name]].usable
                or (name.endswith("Int8") and model_is_quantized)
            )
            and not _needs_more(get_preset(name))
        ]
    refused = {name: f"{states[name].reason}. {states[name].cure}." for name in names if not states[name].usable}
    refused |= {
        name: "it needs an option that no search can know"
        for name in names
        if name not in refused and _needs_more(get_preset(name))
    }
    return [name for name in names if name not in refused], refused


def space_of(
    name: str,
    *,
    objective: str,
    shapes: Mapping[str, Sequence[int]] | None = None,
    model: str = AS_GIVEN,
    cpus: int | None = None,
) -> Space:
    """The space of one preset.

    Parameters
    ----------
    name : str
    objective : str
        Knobs that cannot help with it are left out.
    shapes : mapping of str to sequence of int, optional
        The shapes that the model's inputs may be fixed to, where they are open.
    model : str
        The variant of the model.
    cpus : int, optional
        Those that may be used; all that the process may use when None.
    """
    preset = get_preset(name)
    knobs = [k for k in _knobs(preset, _host(cpus, preset)) if objective in k.objectives]
    knobs = [knob for knob in knobs if knob.choices]
    if shapes and not preset.fixed_shapes:
        fixed = {name: list(shape) for name, shape in shapes.items()}
        knobs.append(Knob(SHAPES, (Choice("fixed shapes", {"input_shapes": fixed}),)))
    start = Candidate(Setup(name), float32=preset.computes_float32 and model == AS_GIVEN, model=model)
    return Space(start, tuple(knobs))


def _knobs(preset: type[Preset], host: Host) -> list[Knob]:
    """The preset's knobs, without the choices that no setup can hold."""
    if preset.name in BUILT_IN:
        return list(preset.knobs(host))
    try:
        return [replace(knob, choices=tuple(filter(_is_writable, knob.choices))) for knob in preset.knobs(host)]
    except Exception as error:  # another package's preset is broken: its defaults are tried
        warn(f"{preset.name} fails to list what to try on it: {type(error).__name__}: {error}", PresetWarning)
        return []


def _is_writable(choice: Choice) -> bool:
    try:
        Setup("", None, choice.options)
    except OptionError:
        return False
    return True


def _host(cpus: int | None, preset: type[Preset]) -> Host:
    kind = (preset.usable_devices() or (preset.family.default,))[0].partition(":")[0].partition(".")[0]
    return Host(
        cpus or usable_cpus().count, kind, simultaneous=cpus is not None or processor.runs_simultaneous_threads()
    )


def _needs_more(preset: type[Preset]) -> bool:
    return any(option.default is REQUIRED and option.name not in preset.bound for option in preset.options)
