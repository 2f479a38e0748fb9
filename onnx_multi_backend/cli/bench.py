# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend bench``: presets side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from onnx_multi_backend.cli import arguments, timed
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.setup import Setup

EXAMPLES = """\b
Examples:
  onnx-multi-backend bench model.onnx --shape x=1,3,224,224
  onnx-multi-backend bench model.onnx --input x=image.npy --preset OrtCpu --preset Openvino --report bench.html
  onnx-multi-backend bench model.onnx --preset Openvino --option precision=default --seed 5
  onnx-multi-backend bench model.onnx --compare old.json       exit code 1 where something became slower
"""


def bench(
    model: arguments.Model,
    *,
    given: arguments.Inputs = None,
    shape: timed.Shapes = None,
    seed: timed.Seed = 0,
    preset: arguments.PresetNames = None,
    device: arguments.DeviceName = None,
    fallback: arguments.FallbackPolicy = None,
    option: arguments.Options = None,
    setup: Annotated[
        list[Path] | None,
        typer.Option(
            "--setup", metavar="FILE.json", help="A setup to measure too; repeat it for several.", show_default=False
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads for every preset; without it each preset has its own default.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=0.1, help="For the rounds in turn, at most.")
    ] = 10.0,
    report: timed.Reports = None,
    compare: timed.Old = None,
    tolerance: timed.Tolerance = 0.05,
) -> None:
    """Measure every usable preset on the same inputs.

    They are timed in turn, each in a process of its own; memory, placement and error are measured beside. Without --input, inputs are
    drawn at random.
    """
    from onnx_multi_backend import tuning

    timed.check_targets(report)
    old = timed.old_report(compare)
    named = _named(preset, device, arguments.parse_options(option, fallback), threads)
    chosen: list[Any] = [*named, *(arguments.read_setup(file) for file in setup or ())]
    with timed.telling() as tell:
        made = tuning.bench(
            model,
            timed.example(model, given),
            presets=_with_usable(chosen, model, named=bool(named)),
            shapes=timed.shapes(shape),
            seed=seed,
            threads=threads,
            seconds=seconds,
            tell=tell,
        )
    timed.finish(made, report, old, tolerance)


def _named(
    presets: list[str] | None, device: str | None, options: Mapping[str, Any], threads: int | None
) -> list[str] | list[Setup]:
    """The presets that were named, with the device and the options that were given; those that know the device where none was."""
    if device is None and not options:
        return presets or []
    if threads is not None:
        raise OptionError(
            "--threads is for presets as they are. Beside --device, --fallback or --option give the preset's own option, for example "
            "--option intra_op_num_threads=2."
        )
    found = arguments.choose(presets, device, options)
    return [choice.setup for choice in found if not choice.why_not]


def _with_usable(chosen: list[Any], model: str, *, named: bool) -> list[Any] | None:
    """What was named; beside setups alone, all that is usable too."""
    if not chosen:
        return None
    if named:
        return chosen
    from onnx_multi_backend.tuning.space import usable

    return [*usable(None, model_is_quantized=is_quantized(load(model).proto))[0], *chosen]
