# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend bench`` and ``tune``: which way to run a model is the fastest here."""

from __future__ import annotations

import contextlib
import enum
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnx_multi_backend import whole_file
from onnx_multi_backend.cli import arguments, console
from onnx_multi_backend.cli.data import open_data
from onnx_multi_backend.cli.inputs import check_files, of_model, read
from onnx_multi_backend.cli.outputs import check_written
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import load

if TYPE_CHECKING:
    from onnx_multi_backend.tuning import Report

BENCH_EXAMPLES = """\b
Examples:
  onnx-multi-backend bench model.onnx --shape x=1,3,224,224
  onnx-multi-backend bench model.onnx --input x=image.npy --preset OrtCpu --preset Openvino --report bench.html
  onnx-multi-backend bench model.onnx --compare old.json       exit code 1 where something became slower
"""
TUNE_EXAMPLES = """\b
Examples:
  onnx-multi-backend tune model.onnx --input x=image.npy --save setup.json
  onnx-multi-backend tune model.onnx --shape x=1,3,320,320 --min-cosine 0.999 --report tuned.html
  onnx-multi-backend run model.onnx --input x=image.npy --setup setup.json
"""

Objective = enum.StrEnum("Objective", {o: o for o in ("latency", "throughput", "memory")})  # type: ignore[misc]
_LATENCY = Objective("latency")

Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=SIZES",
        help="The shape of an input that is drawn at random: x=1,3,224,224. Repeat it for several.",
        show_default=False,
    ),
]
Reports = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="All that was measured, as .html, .json or .md; repeat it for several.",
        show_default=False,
    ),
]
Old = Annotated[
    Path | None,
    typer.Option(
        "--compare",
        metavar="OLD.json",
        help="A report of the same model on this machine: exit code 1 where something is significantly slower now.",
        show_default=False,
    ),
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", metavar="SHARE", min=0, help="For --compare: the slowdown to tolerate.")
]


def bench(
    model: arguments.Model,
    *,
    given: arguments.Inputs = None,
    shape: Shapes = None,
    preset: arguments.PresetNames = None,
    setup: Annotated[
        list[Path] | None,
        typer.Option(
            "--setup", metavar="FILE.json", help="A setup to measure too; repeat it for several.", show_default=False
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", min=1, help="For every preset; its own default without.", show_default=False
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=0.1, help="For the rounds in turn, at most.")
    ] = 10.0,
    report: Reports = None,
    compare: Old = None,
    tolerance: Tolerance = 0.05,
) -> None:
    """Measure every usable preset on the same inputs.

    They are timed in turn, each in a process of its own; memory, placement and error are measured beside. Without --input, inputs are
    drawn at random.
    """
    from onnx_multi_backend import tuning

    _check_targets(report)
    old = _old(compare)
    chosen: list[Any] = [*(preset or ()), *(arguments.read_setup(file) for file in setup or ())]
    with _telling() as tell:
        made = tuning.bench(
            model,
            _example(model, given),
            presets=_with_usable(chosen, model, named=bool(preset)),
            shapes=_shapes(shape),
            threads=threads,
            seconds=seconds,
            tell=tell,
        )
    _finish(made, report, old, tolerance)


def tune(
    model: arguments.Model,
    *,
    given: arguments.Inputs = None,
    shape: Shapes = None,
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
    report: Reports = None,
    compare: Old = None,
    tolerance: Tolerance = 0.05,
) -> None:
    """Search for the fastest setup that is exact enough.

    Presets and their options are tried on this machine, in turn. Without --input, inputs are drawn at random.

    Without a limit on the error, nothing below float32 is chosen. Ctrl-C keeps the best so far.
    """
    from onnx_multi_backend import tuning

    _check_targets(report)
    check_written(save, (".json",))
    check_written(save_model, (".onnx",))
    old = _old(compare)
    with _telling() as tell:
        tuned = tuning.tune(
            model,
            _example(model, given),
            objective=str(objective),
            max_error=max_error,
            min_cosine=min_cosine,
            budget_s=budget,
            data=None if data is None else open_data(data, of_model(model)),
            presets=preset,
            shapes=_shapes(shape),
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
    _finish(tuned.report, report, old, tolerance)
    for file, saved in ((save, "the setup"), (save_model if tuned.int8 is not None else None, "the int8 model")):
        if file is not None:
            console.line(f"Saved {file}: {saved}")


def _finish(made: Report, files: Sequence[Path] | None, old: Report | None, tolerance: float) -> None:
    from onnx_multi_backend.cli import bench_output
    from onnx_multi_backend.tuning.comparing import compare

    comparison, refused = None, None
    if old is not None:
        try:
            comparison = compare(old, made, tolerance=tolerance)
        except OptionError as error:  # what was measured is shown and saved all the same
            refused = error
    bench_output.show(made, comparison)
    for file in files or ():
        if file.suffix == ".json":
            text = made.to_json()
        else:
            text = made.to_html(comparison) if file.suffix == ".html" else made.to_markdown(comparison)
        whole_file.save(file, text.encode())
        console.line(f"Saved {file}")
    if refused is not None:
        raise refused
    if comparison is not None and comparison.regressed:
        raise typer.Exit(1)


def _old(file: Path | None) -> Report | None:
    if file is None:
        return None
    from onnx_multi_backend.tuning import read_report

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(f"--compare {file}: it is not text: {error}.") from error
    return read_report(text, f"--compare {file}")


def _example(model: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    if not given:
        return None
    check_files(given)
    return read(given, of_model(model))


def _with_usable(chosen: list[Any], model: str, *, named: bool) -> list[Any] | None:
    """What was named; beside setups alone, all that is usable too."""
    if not chosen:
        return None
    if named:
        return chosen
    from onnx_multi_backend.tuning.space import usable

    return [*usable(None, model_is_quantized=is_quantized(load(model).proto))[0], *chosen]


def _shapes(given: Sequence[str] | None) -> dict[str, list[int]] | None:
    shapes: dict[str, list[int]] = {}
    for text in given or ():
        name, _, sizes = text.rpartition("=")
        parts = [part.strip() for part in sizes.replace("x", ",").split(",")] if sizes else []
        if not name or not all(part.isdecimal() for part in parts):
            raise OptionError(f"--shape is written NAME=SIZES, for example --shape x=1,3,224,224; {text!r} given.")
        shapes[name] = [int(part) for part in parts]
    return shapes or None


def _check_targets(files: Sequence[Path] | None) -> None:
    for file in files or ():
        check_written(file, (".html", ".json", ".md"))


@contextlib.contextmanager
def _telling() -> Iterator[Callable[[str], None]]:
    """Show on stderr what is done, while a person reads it."""
    if not console.on_terminal(stderr=True):
        yield lambda _: None
        return
    with console.console(stderr=True).status("starting") as status:
        yield lambda text: status.update(console.harmless(text))
