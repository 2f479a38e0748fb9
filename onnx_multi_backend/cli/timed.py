# SPDX-License-Identifier: Apache-2.0
"""What `bench` and `tune` share: options, inputs, and what becomes of the report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnx_multi_backend import whole_file
from onnx_multi_backend.cli import console
from onnx_multi_backend.cli.inputs import check_files, of_model, read
from onnx_multi_backend.cli.outputs import check_written
from onnx_multi_backend.errors import OptionError

if TYPE_CHECKING:
    from onnx_multi_backend.tuning import Report


Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=SIZES",
        help="The shape of an input that is drawn at random: x=1,3,224,224. Repeat it for several.",
        show_default=False,
    ),
]


Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="For inputs that are drawn at random.")]


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


def finish(made: Report, files: Sequence[Path] | None, old: Report | None, tolerance: float) -> None:
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
    if made.best is None or (comparison is not None and comparison.regressed):
        raise typer.Exit(1)


def old_report(file: Path | None) -> Report | None:
    if file is None:
        return None
    from onnx_multi_backend.tuning import read_report

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(f"--compare {file}: it is not text: {error}.") from error
    return read_report(text, f"--compare {file}")


def example(model: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    if not given:
        return None
    check_files(given)
    return read(given, of_model(model))


def shapes(given: Sequence[str] | None) -> dict[str, list[int]] | None:
    shapes: dict[str, list[int]] = {}
    for text in given or ():
        name, _, sizes = text.rpartition("=")
        parts = [part.strip() for part in sizes.replace("x", ",").split(",")] if sizes else []
        if not name or not all(part.isdecimal() for part in parts):
            raise OptionError(f"--shape is written NAME=SIZES, for example --shape x=1,3,224,224; {text!r} given.")
        shapes[name] = [int(part) for part in parts]
    return shapes or None


def check_targets(files: Sequence[Path] | None) -> None:
    for file in files or ():
        check_written(file, (".html", ".json", ".md"))


@contextlib.contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """Show on stderr what is done, while a person reads it."""
    if not console.on_terminal(stderr=True):
        yield lambda _: None
        return
    with console.console(stderr=True).status("starting") as status:
        yield lambda text: status.update(console.harmless(text))
