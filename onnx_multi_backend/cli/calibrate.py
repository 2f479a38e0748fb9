# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend calibrate`` and ``quantize``: from a float model and data to int8."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from onnx_multi_backend.cli import arguments, console
from onnx_multi_backend.cli.data import named, of_the_user, open_data
from onnx_multi_backend.cli.inputs import of_model
from onnx_multi_backend.cli.outputs import check_written

CALIBRATE_EXAMPLES = """\b
Examples:
  onnx-multi-backend calibrate model.onnx --data samples/ --out table.flatbuffers
  onnx-multi-backend calibrate model.onnx --data samples.npz --method entropy --out table.cache
"""
QUANTIZE_EXAMPLES = """\b
Examples:
  onnx-multi-backend quantize model.onnx --data samples/ --out model.int8.onnx --report report.html
  onnx-multi-backend quantize model.onnx --data my_data:batches --target openvino --out model.int8.onnx
  onnx-multi-backend quantize model.onnx --data my_data:batches --metric my_data:accuracy --max-drop 0.01 --out m.onnx
"""

Method = enum.StrEnum("Method", {m: m for m in ("minmax", "entropy", "percentile", "distribution")})  # type: ignore[misc]
Target = enum.StrEnum("Target", {t: t for t in ("portable", "openvino", "ort", "tensorrt")})  # type: ignore[misc]

_MINMAX, _PORTABLE = Method("minmax"), Target("portable")

Data = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="DIR|NPZ|MODULE:NAME",
        help="A folder of .npy or .npz files, one a batch; an .npz file whose arrays hold the samples along their first axis; or an "
        "iterable in a module.",
        show_default=False,
    ),
]
How = Annotated[Method, typer.Option("--method", help="How the range of a tensor is found.")]
Batches = Annotated[
    int | None, typer.Option("--batches", metavar="N", min=1, help="Read no more than these.", show_default=False)
]


def calibrate(
    model: arguments.Model,
    *,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", help="A .flatbuffers, .cache (TensorRT's own) or .json file.", show_default=False
        ),
    ],
    method: How = _MINMAX,
    batches: Batches = None,
) -> None:
    """Make a calibration table for TensorRT."""
    from onnx_multi_backend import calibration

    check_written(out, (".flatbuffers", ".cache", ".json"))
    table = calibration.calibrate(model, open_data(data, of_model(model)), method=str(method), batches=batches)
    table.save(out)
    console.line(f"Saved {out}: the ranges of {len(table)} tensors")


def quantize(
    model: arguments.Model,
    *,
    data: Data,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.onnx", help="The int8 model.", show_default=False)],
    target: Annotated[
        Target,
        typer.Option(
            "--target",
            help="What the int8 model is for: any engine, OpenVINO, ONNX Runtime's CPU provider, or TensorRT.",
        ),
    ] = _PORTABLE,
    method: How = _MINMAX,
    batches: Batches = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="What was measured, as .html or .json; repeat it for several.",
            show_default=False,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="NAME",
            help="A node or an operator that stays float; repeat it for several.",
            show_default=False,
        ),
    ] = None,
    min_cosine: Annotated[
        float,
        typer.Option(
            "--min-cosine",
            metavar="X",
            min=-1,
            max=1,
            help="The least cosine similarity to the float model, of any output on any batch.",
        ),
    ] = 0.99,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="MODULE:NAME",
            help="A function of outputs and labels that returns figures from 0 to 1.",
            show_default=False,
        ),
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option("--max-drop", metavar="X", min=0, help="How much of the metric may be lost.", show_default=False),
    ] = None,
    even_if_slower: Annotated[
        bool, typer.Option("--even-if-slower", help="Save the int8 model although it is not faster on this machine.")
    ] = False,
) -> None:
    """Quantize a float model to int8, where that pays.

    Exit code 1: it stays float, because int8 is not faster here or not accurate enough; nothing is saved but the report.
    """
    from onnx_multi_backend import calibration, whole_file

    check_written(out, (".onnx",), model=model)
    for file in report or ():
        check_written(file, (".html", ".json"))
    made = calibration.quantize(
        model,
        open_data(data, of_model(model)),
        target=str(target),
        method=str(method),
        exclude=tuple(exclude or ()),
        max_drop=max_drop,
        metric=of_the_user(named(metric, "--metric"), f"--metric {metric}") if metric is not None else None,
        min_cosine=min_cosine,
        require_speedup=not even_if_slower,
        batches=batches,
    )
    for line in str(made.report).splitlines():
        console.line(line)
    for file in report or ():
        text = made.report.to_html() if file.suffix == ".html" else made.report.to_json()
        whole_file.save(file, text.encode())
        console.line(f"Saved {file}")
    if not made.report.quantized:
        slower = made.report.speed is not None and not made.report.speed.faster
        console.line(f"{out} is not written{'; --even-if-slower writes the int8 model all the same' if slower else ''}")
        raise typer.Exit(1)
    whole_file.save(out, made.model.SerializeToString())
    console.line(f"Saved {out}")
