# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend inspect``: what a model is, and which presets run it."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import typer

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.patience import Watch, unhurried
from onnx_multi_backend.cli import arguments, console, facts, instructions, threads
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.cli.messages import INTERRUPTED, say
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.errors import FallbackWarning, OnnxMultiBackendError, UnsupportedModelError
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.loading import LoadedModel, load
from onnx_multi_backend.presets.registry import get_preset

EXAMPLES = """\b
Examples:
  onnx-multi-backend inspect model.onnx
  onnx-multi-backend inspect model.onnx --preset OrtOpenvino --preset Openvino
  onnx-multi-backend inspect model.onnx --device CUDA:1 --fallback none
"""


def inspect(
    model: arguments.Model,
    *,
    preset: arguments.PresetNames = None,
    device: arguments.DeviceName = None,
    fallback: arguments.FallbackPolicy = None,
    option: arguments.Options = None,
    json: arguments.Json = False,
) -> None:
    """Show what a model is, which presets run it, and how.

    Each preset that is usable here prepares the model: what would be adapted, and on which execution provider each
    node runs. Nothing is computed. Exit code 1: none of the presets runs the model.
    """
    loaded = load(model)
    known = facts.of(loaded)
    options = arguments.parse_options(option, fallback)
    for name in preset or ():
        get_preset(name)  # a wrong name is reported before anything else, and so is a device that is not there
    choices = arguments.choose(preset, device, options)
    if not json:
        facts.show(known)
    _check(loaded)
    answers = _answers([choice for choice in choices if not choice.why_not], model)
    if json:
        on_cpu = instructions.to_json() if preset and any(a.on_openvino for a in answers) else None
        told: dict[str, Any] = {"openvino_cpu": on_cpu} if on_cpu else {}
        if preset:
            told["threads"] = threads.to_json()
        console.as_json({"model": facts.to_json(known), "presets": {a.preset: a.to_json() for a in answers}, **told})
    else:
        _show(answers)
        if preset:
            threads.show()
        if preset and any(a.on_openvino for a in answers):
            instructions.show()
    if any(a.interrupted for a in answers):
        say("error", "interrupted; what is shown was known by then.")
        raise typer.Exit(INTERRUPTED)
    if not any(a.runs for a in answers):
        _check(loaded, refusal=" ".join(node.op_type for node in all_nodes(loaded.proto)))
        raise typer.Exit(1)


def _check(model: LoadedModel, *, refusal: str | None = None) -> None:
    """Refuse a model that is not valid; of one that is too new each preset says so."""
    with contextlib.suppress(UnsupportedModelError):
        checks.check_versions(model)
        checks.check(model, refusal=refusal)


_NOT_ASKED = "it was not asked"


@dataclass(frozen=True)
class _Answer:
    """What one preset says about the model."""

    preset: str
    label: str
    reasons: Sequence[str] = ()
    adaptations: Sequence[Adaptation] = ()
    placement: Sequence[NodePlacement] = ()
    provider: str = ""
    notes: Sequence[str] = ()
    interrupted: bool = False

    @property
    def runs(self) -> bool | None:
        """None where the question was interrupted."""
        return None if self.interrupted else not self.reasons

    @property
    def on_openvino(self) -> bool:
        """Whether OpenVINO computes, by itself or as an execution provider."""
        return self.provider in ("OpenVINO", "OpenVINOExecutionProvider")

    @property
    def providers(self) -> dict[str, int]:
        return dict(Counter(n.provider for n in self.placement).most_common())

    @property
    def elsewhere(self) -> list[NodePlacement]:
        return [n for n in self.placement if n.provider != self.provider]

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "adaptations": [
                {"pass": a.pass_name, "node": a.node, "change": a.change, "reason": a.reason} for a in self.adaptations
            ],
            "provider": self.provider,
            "nodes": self.providers,
            "elsewhere": [n._asdict() for n in self.elsewhere],
        }


def _answers(choices: Sequence[Choice], model: str) -> list[_Answer]:
    """What presets say, one after the other, until there is an interrupt."""
    answers: list[_Answer] = []
    for place, choice in enumerate(choices):
        answers.append(_ask(choice, model))
        if answers[-1].interrupted:
            answers += [_Answer(c.preset.name, c.label, (_NOT_ASKED,), interrupted=True) for c in choices[place + 1 :]]
            break
    return answers


def _ask(choice: Choice, model: str) -> _Answer:
    text = f"asking {choice.label}; Ctrl-C stops it"
    with console.waiting(text) as tell, warnings.catch_warnings(record=True) as caught:
        watch = Watch(lambda watch: tell(_asked(watch)))
        warnings.simplefilter("always")
        try:
            with unhurried(watch):
                prepared = choice.setup.prepare(model)
        except KeyboardInterrupt:
            return _Answer(choice.preset.name, choice.label, (_asked(watch),), interrupted=True)
        except OnnxMultiBackendError as error:
            reasons = error.reasons if isinstance(error, UnsupportedModelError) else (str(error),)
            return _Answer(choice.preset.name, choice.label, reasons)
    notes = [str(w.message) for w in caught if not issubclass(w.category, FallbackWarning | DeprecationWarning)]
    return _Answer(
        choice.preset.name,
        choice.label,
        (),
        prepared.adaptations,
        prepared.placement(),
        prepared.provider,
        notes,
    )


def _asked(watch: Watch) -> str:
    """How far the asking is, and what is known by then."""
    if not watch.nodes:
        return "before any node was asked about by itself"
    refused = f"; it lacks {console.shorten(list(watch.hopeless))}" if watch.hopeless else ""
    return f"{watch.nodes} node{'' if watch.nodes == 1 else 's'} asked about one by one{refused}"


def _show(answers: Sequence[_Answer]) -> None:
    console.line()
    console.heading("Presets")
    rows = []
    for a in answers:
        nodes = ", ".join(f"{count} on {provider}" for provider, count in a.providers.items())
        folded = "all folded at load" if a.runs else "-"
        runs = "unknown" if a.interrupted else "yes" if a.runs else "no"
        rows.append([a.label, runs, nodes or folded, str(len(a.adaptations)) if a.runs else "-"])
    console.table(["Preset", "Runs", "Nodes", "Adaptations"], rows)
    told: dict[_Detail, list[str]] = {}
    for a in answers:
        for detail in _details(a):
            told.setdefault(detail, []).append(a.label)
    for (one, several, lines), labels in told.items():
        console.line()
        console.heading(f"{', '.join(labels)}{one if len(labels) == 1 else several}")
        for text in lines:
            console.line(console.one_line(text), indent=2)


class _Detail(NamedTuple):
    """What is to be said about a preset, or in the same words about several."""

    one: str
    several: str
    lines: tuple[str, ...]


def _details(a: _Answer) -> list[_Detail]:
    if a.reasons == (_NOT_ASKED,):
        return [_Detail(" was not asked", " were not asked", ())]
    refused = (" was interrupted", " were interrupted") if a.interrupted else (" does not run it", " do not run it")
    elsewhere = f"{len(a.elsewhere)} of {len(a.placement)} nodes elsewhere"
    found = [
        _Detail(*refused, tuple(a.reasons)),
        _Detail(", note", ", note", tuple(a.notes)),
        _Detail(" adapts it", " adapt it", tuple(_adaptations(a.adaptations))),
        _Detail(f" runs {elsewhere}", f" run {elsewhere}", tuple(_elsewhere(a.elsewhere))),
    ]
    return [detail for detail in found if detail.lines]


def _adaptations(adaptations: Sequence[Adaptation]) -> list[str]:
    """One line for each kind of change, with the nodes that have it."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for a in adaptations:
        nodes.setdefault((a.pass_name, a.change, a.reason), []).append(str(a.node or ""))
    return [
        f"{pass_name}"
        + (f" at {console.shorten(named)}" if (named := [*filter(None, on)]) else "")
        + f": {change} ({reason})"
        for (pass_name, change, reason), on in nodes.items()
    ]


def _elsewhere(nodes: Sequence[NodePlacement]) -> list[str]:
    by_provider: dict[str, list[str]] = {}
    for node in nodes:
        by_provider.setdefault(node.provider, []).append(str(node))
    return [f"{provider}: {console.shorten(listed)}" for provider, listed in by_provider.items()]
