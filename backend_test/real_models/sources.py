# SPDX-License-Identifier: Apache-2.0
"""Which models there are: in packages, in onnx itself, and what the exporters wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from backend_test.real_models.inputs import draw


@dataclass(frozen=True)
class Model:
    """A model and where it is from.

    Attributes
    ----------
    name : str
    path : Path
    source : str
        Where it is from: a package with its version, ``onnx`` or ``made``.
    inputs : Path or None
        A ``.npz`` that was written with it.
    """

    name: str
    path: Path
    source: str
    inputs: Path | None = None

    def feeds(self) -> dict[str, Any]:
        """The inputs that came with the model, or drawn ones."""
        if self.inputs is None:
            return draw(self.name, onnx.load(self.path, load_external_data=False))
        arrays = dict(np.load(self.inputs))
        return {name: a.astype(object) if a.dtype.kind == "U" else a for name, a in arrays.items()}


def all_models(packages: Path | None, made: list[Path]) -> list[Model]:
    """Every model, each content once."""
    seen: set[str] = set()
    found = []
    for model in (*_light(), *_made(made), *_packaged(packages)):
        with model.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest not in seen:
            seen.add(digest)
            found.append(model)
    return found


def _light() -> Iterator[Model]:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(folder.glob("*.onnx")):
        yield Model(f"onnx/{path.stem}", path, f"onnx {onnx.__version__}")


def _made(roots: list[Path]) -> Iterator[Model]:
    for root in roots:
        for path in sorted(root.glob("*/model.onnx")):
            inputs = next(path.parent.glob("inputs*.npz"))
            yield Model(path.parent.name, path, "made", inputs)


def _packaged(root: Path | None) -> Iterator[Model]:
    """Models of the packages that were installed into a folder, none of which is imported."""
    if root is None:
        return
    for package in sorted(metadata.distributions(path=[str(root)]), key=lambda d: str(d.name)):
        files = [Path(f) for f in package.files or () if f.suffix == ".onnx"]
        for file in sorted(files):
            parts = [*file.parts[1:-1], file.stem]
            kept = [p for p in parts if p not in ("models", "_models", "resources", "data", "saved_models", "assets")]
            yield Model(f"{package.name}/{'/'.join(kept)}", root / file, f"{package.name} {package.version}")
