# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend cache``: what is kept of prepared models, and how to be rid of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from onnx_multi_backend.cache.entry import read_about
from onnx_multi_backend.cache.folder import FOLDER_VARIABLE, SIZE_VARIABLE, resolve, size_limit
from onnx_multi_backend.cache.upkeep import Kept, clear, entries
from onnx_multi_backend.cli import console
from onnx_multi_backend.cli.arguments import Json
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.measuring.figures import bytes_text
from onnx_multi_backend.presets.ort_openvino import UNKEPT

EXAMPLES = """\b
Examples:
  onnx-multi-backend cache info
  onnx-multi-backend cache info --cache-dir build/cache --json
  onnx-multi-backend cache clear
"""

app = typer.Typer(name="cache", help="Show or clear what is kept of prepared models.", epilog=EXAMPLES)

CacheDir = Annotated[
    str | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help=f"The folder; {FOLDER_VARIABLE} or the user's cache folder unless given.",
        show_default=False,
    ),
]


@app.command()
def info(*, cache_dir: CacheDir = None, json: Json = False) -> None:
    """Show where the cache is, how large it is and may be, and what it holds."""
    root, limit = _root(cache_dir), size_limit()
    found, unkept = [], []
    groups: dict[tuple[str, str], list[Kept]] = {}
    for entry in sorted(entries(root), key=lambda entry: entry.used, reverse=True):
        about = read_about(entry.folder)
        if "unkept" in about:
            unkept.append({"preset": about["preset"], "model": about["model"], "reason": about["unkept"]})
            continue
        found.append(entry)
        groups.setdefault((about.get("preset", "damaged"), about.get("engine", "")), []).append(entry)
    if json:
        presets = [{"preset": p, "engine": e, "entries": len(g), "bytes": _size(g)} for (p, e), g in groups.items()]
        console.as_json(
            {
                "folder": str(root),
                "entries": len(found),
                "bytes": _size(found),
                "limit": limit,
                "presets": presets,
                "unkept": unkept,
            }
        )
        return
    console.facts(
        [
            ("folder", str(root)),
            ("entries", str(len(found))),
            ("size", bytes_text(_size(found))),
            ("limit", f"{bytes_text(limit)} ({SIZE_VARIABLE} sets it)"),
        ],
        indent=0,
    )
    if groups:
        console.line()
        rows = [[p, e or "-", str(len(g)), bytes_text(_size(g))] for (p, e), g in sorted(groups.items())]
        console.table(["Preset", "Engine", "Entries", "Size"], rows)
    console.line()
    for told in unkept:
        console.line(f"{told['preset']} does not keep {told['model']}: {told['reason']}.")
    console.line(f"The OrtOpenvino presets keep models for GPU and NPU alone: {UNKEPT}.")


@app.command(name="clear")
def clear_(*, cache_dir: CacheDir = None) -> None:
    """Remove all entries; other files in the folder stay."""
    root = _root(cache_dir)
    removed = clear(root)
    count = f"{len(removed)} entr{'y' if len(removed) == 1 else 'ies'}"
    console.line(f"{count}, {bytes_text(_size(removed))}, removed from '{root}'.")


def _root(given: str | None) -> Path:
    root = resolve(given, slow_builds=True)
    assert root is not None
    if root.exists() and not root.is_dir():
        raise OptionError(f"--cache-dir is a folder; '{root}' is a file.")
    return root


def _size(found: Sequence[Kept]) -> int:
    return sum(entry.size for entry in found)
