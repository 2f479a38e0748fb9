# SPDX-License-Identifier: Apache-2.0
"""The commands, and the options that come before them."""

from __future__ import annotations

from typing import Annotated

import typer

import onnx_multi_backend
from onnx_multi_backend.cli import bench, cache, calibrate, conformance, inspect, messages, presets, run, tune
from onnx_multi_backend.early_interrupt import PROGRAM

EXAMPLES = """\b
Start with:
  onnx-multi-backend presets                          what is usable here, and why not
  onnx-multi-backend inspect model.onnx               which presets run a model, and how
  onnx-multi-backend run model.onnx --random          run it once
  onnx-multi-backend bench model.onnx                 every usable preset side by side
  onnx-multi-backend tune model.onnx                  search for the fastest setup
  onnx-multi-backend quantize --help                  to int8, where that is faster
  onnx-multi-backend conformance                      ONNX's official suite on the presets usable here
  onnx-multi-backend cache info                       what is kept for the next start
"""

app = typer.Typer(
    name=PROGRAM,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command(epilog=presets.EXAMPLES)(presets.presets)
app.command(epilog=inspect.EXAMPLES)(inspect.inspect)
app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.command(epilog=tune.EXAMPLES)(tune.tune)
app.command(epilog=calibrate.CALIBRATE_EXAMPLES)(calibrate.calibrate)
app.command(epilog=calibrate.QUANTIZE_EXAMPLES)(calibrate.quantize)
app.command(epilog=conformance.EXAMPLES)(conformance.conformance)
app.add_typer(cache.app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {onnx_multi_backend.__version__}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(messages.DEBUG, help="Show tracebacks and the log; goes anywhere on the line.")
    ] = False,
) -> None:
    """Run ONNX models on every backend that ONNX Runtime and OpenVINO offer here.

    Exit codes: 0 as asked, 1 it ran and the answer is no, 2 an error (one line on stderr).
    """
