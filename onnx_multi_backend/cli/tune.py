# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend tune``: the fastest setup that is exact enough."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Annotated

import typer

from onnx_multi_backend import whole_file
from onnx_multi_backend.cli import arguments, console, timed
from onnx_multi_backend.cli.data import open_data
from onnx_multi_backend.cli.inputs import of_model
from onnx_multi_backend.cli.outputs import check_written

EXAMPLES = """\b
Examples:
  onnx-multi-backend tune model.onnx --input x=image.npy --save setup.json
  onnx-multi-backend tune model.onnx --shape x=1,3,320,320 --min-cosine 0.999 --report tuned.html
  onnx-multi-backend run model.onnx --input x=image.npy --setup setup.json
"""


Objective = enum.StrEnum("Objective", {o: o for o in ("latency", "throughput", "memory")})  # type: ignore[misc]


_LATENCY = Objective("latency")


def tune(
    model: arguments.Model,
    *,
    given: arguments.Inputs = None,
    shape: timed.Shapes = None,
    seed: timed.Seed = 0,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR|NPZ|MODULE:NAME",
            help="Further inputs, as `quantize` takes them: results are compared on them, and int8 is tried.",
            show_default=False,
        ),
    ] = None,
    preset: arguments.PresetNames = None,
    objective: Annotated[Objective, typer.Option("--objective", help="What to tune for.")] = _LATENCY,
    max_error: Annotated[
        float | None,
        typer.Option(
            "--max-error",
            metavar="X",
            min=0,
            help="The largest error of an output element; allows less than float32.",
            show_default=False,
        ),
    ] = None,
    min_cosine: Annotated[
        float | None,
        typer.Option(
            "--min-cosine",
            metavar="X",
            min=-1,
            max=1,
            help="The least cosine similarity of an output; allows less than float32.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[float, typer.Option("--budget", metavar="S", min=1, help="Seconds for the search.")] = 60.0,
    static_shapes: Annotated[
        bool, typer.Option("--static-shapes", help="Allow a setup that takes inputs of these shapes alone.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE.json",
            help="The setup, for `run --setup`; --report FILE.json holds all that was measured.",
            show_default=False,
        ),
    ] = None,
    save_model: Annotated[
        Path | None,
        typer.Option(
            "--save-model",
            metavar="FILE.onnx",
            help="The int8 model, where one is chosen. The setup is for that model then.",
            show_default=False,
        ),
    ] = None,
    report: timed.Reports = None,
    compare: timed.Old = None,
    tolerance: timed.Tolerance = 0.05,
) -> None:
    """Search for the fastest setup that is exact enough.

    Presets and their options are tried on this machine, in turn. Without --input, inputs are drawn at random.

    Without a limit on the error, nothing below float32 is chosen. Ctrl-C keeps the best so far.
    """
    from onnx_multi_backend import tuning

    timed.check_targets(report)
    check_written(save, (".json",))
    check_written(save_model, (".onnx",), model=model)
    old = timed.old_report(compare)
    with timed.telling() as tell:
        tuned = tuning.tune(
            model,
            timed.example(model, given),
            objective=str(objective),
            max_error=max_error,
            min_cosine=min_cosine,
            budget_s=budget,
            data=None if data is None else open_data(data, of_model(model)),
            presets=preset,
            shapes=timed.shapes(shape),
            seed=seed,
            static_shapes=static_shapes,
            tell=tell,
        )
    if save is not None:
        text = json.dumps(tuned.setup.to_json(), indent=2, ensure_ascii=False)
        whole_file.save(save, f"{text}\n".encode())
    if tuned.int8 is not None:
        if save_model is not None:
            whole_file.save(save_model, tuned.int8.SerializeToString())
        else:
            console.line("The setup is for an int8 model, which was not saved: --save-model FILE.onnx saves it.")
    timed.finish(tuned.report, report, old, tolerance)
    for file, saved in ((save, "the setup"), (save_model if tuned.int8 is not None else None, "the int8 model")):
        if file is not None:
            console.line(f"Saved {file}: {saved}")
