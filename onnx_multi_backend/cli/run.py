# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend run``: a model, its inputs, its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from onnx_multi_backend import backend
from onnx_multi_backend.cli import arguments, console, inputs, outputs
from onnx_multi_backend.cli.timed import Shapes
from onnx_multi_backend.cli.timed import shapes as parse_shapes
from onnx_multi_backend.errors import InputError, OptionError, RunError
from onnx_multi_backend.models import random_inputs
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel

EXAMPLES = """\b
Examples:
  onnx-multi-backend run model.onnx --input image.npy
  onnx-multi-backend run model.onnx --input ids=ids.npy --input mask=mask.pb --save out.npz
  onnx-multi-backend run model.onnx --random --seed 7 --dim batch=4 --device CUDA:0
  onnx-multi-backend run model.onnx --random --shape x=1,3,320,320
  onnx-multi-backend run model.onnx --random --preset OrtCpu --option intra_op_num_threads=2
"""


def run(
    model: arguments.Model,
    *,
    given: arguments.Inputs = None,
    random: Annotated[
        bool,
        typer.Option(
            "--random", help="Draw the inputs that no file gives: floats in [0, 1), small integers, masks of ones."
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="For --random.")] = 0,
    dim: Annotated[
        list[str] | None,
        typer.Option(
            "--dim",
            metavar="NAME=SIZE",
            help="For --random: the size of a dimension, by its name or by INPUT:AXIS. Repeat it for several.",
            show_default=False,
        ),
    ] = None,
    shape: Shapes = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE.npz", help="Save the outputs by name.", show_default=False),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="The preset; by default the device's own.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="CPU (the default, OrtCpu), CUDA[:N] (OrtCuda), TENSORRT[:N] (OrtTensorrtFloat), OPENVINO[:dev] (Openvino), "
            "ORT_OPENVINO[:dev] (OrtOpenvino), or GPU[:N]: CUDA, or OpenVINO's GPU where CUDA is not usable. With --preset a "
            "device as that preset calls it.",
            show_default=False,
        ),
    ] = None,
    fallback: arguments.FallbackPolicy = None,
    option: arguments.Options = None,
    setup: Annotated[
        Path | None,
        typer.Option(
            "--setup",
            metavar="FILE.json",
            help='Preset, device and options from a file: {"preset": "OrtCpu", "device": null, "options": {}}.',
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a model once and show its outputs."""
    files = given or []
    inputs.check_files(files)
    if dim and not random:
        raise InputError("--dim goes with --random.")
    if shape and not random:
        raise InputError("--shape goes with --random.")
    if save is not None:
        outputs.check_target(save)
    options = arguments.parse_options(option, fallback)
    if setup is not None:
        if preset is not None or device is not None or options:
            raise OptionError(
                "--setup names preset, device and options itself. Leave --preset, --device, --option and --fallback out."
            )
        prepared = arguments.read_setup(setup).prepare(model)
    else:
        prepared = _prepare(model, preset, device, options)
    infos = prepared.get_inputs()
    values = inputs.read(files, infos)
    drawn = ""
    missing = [info for info in infos if info.name not in values]
    if random:
        sizes = {
            **random_inputs.parse_dims(dim or (), infos),
            **random_inputs.sizes_of(parse_shapes(shape) or {}, infos),
        }
        drawn = ", ".join(f"{info.name}: {random_inputs.shape_of(info, sizes)}" for info in missing)
        values.update(random_inputs.draw(missing, seed, sizes, random_inputs.tables(load(model).proto)))
    elif missing and not files:
        raise InputError(f"Give the inputs with --input NAME=FILE, or --random. {'; '.join(map(str, missing))}.")
    try:
        results = prepared.run(values)
    except RunError as error:
        if not random:
            raise
        raise RunError(
            f"{str(error).rstrip('.')}. The inputs were drawn at random ({drawn}); give what the model needs with --input NAME=FILE, --shape or "
            "--dim."
        ) from error
    named = dict(zip((info.name for info in prepared.get_outputs()), results, strict=True))
    if save is not None:
        outputs.save(save, named)
    _show(prepared, named, drawn)
    if save is not None:
        console.line(f"Saved {save}")


def _prepare(model: str, preset: str | None, device: str | None, options: dict[str, Any]) -> PreparedModel:
    if preset is None:
        return backend.prepare(model, device or "CPU", **options)
    chosen = get_preset(preset)
    return chosen.prepare(model, device, **{**arguments.SUPPLIED.get(chosen.name, {}), **options})


def _show(prepared: PreparedModel, named: dict[str, Any], drawn: str) -> None:
    device = f" on {prepared.device}" if prepared.device else ""
    adapted = f", {count} adaptation{'s' if count > 1 else ''}" if (count := len(prepared.adaptations)) else ""
    console.heading(f"{prepared.preset}{device}{adapted}")
    if drawn:
        console.line(f"Drawn at random: {drawn}")
    rows = [row for name, value in named.items() for row in outputs.rows(name, value)]
    console.table(["Output", "Type", "Shape", "Values"], rows)
