# SPDX-License-Identifier: Apache-2.0
"""Small models that onnx and ONNX Runtime ship, to try things with."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import overload

from onnx_multi_backend.errors import OptionError


def _folders() -> list[Path]:
    found = []
    for package, inside in (("onnx", "backend/test/data/light"), ("onnxruntime", "datasets")):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent / inside)
    return found


@overload
def get_example(name: None = None) -> list[str]: ...
@overload
def get_example(name: str) -> str: ...
def get_example(name: str | None = None) -> str | list[str]:
    """Path of a small model that is installed already.

    Parameters
    ----------
    name : str, optional
        A file's name, with or without ``.onnx``; None lists the names.

    Raises
    ------
    OptionError
        There is no example of this name; the message lists the known ones.
    """
    models = {path.name: path for folder in _folders() for path in sorted(folder.glob("*.onnx"))}
    if name is None:
        return list(models)
    for wanted in (name, f"{name}.onnx"):
        if wanted in models:
            return str(models[wanted])
    raise OptionError(f"There is no example model {name!r}. There are {', '.join(models) or 'none'}.")
