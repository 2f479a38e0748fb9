# SPDX-License-Identifier: Apache-2.0
"""A model in a folder of its own, with inputs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import ModelProto
from torch import Tensor, nn

#: What PyTorch's exporter writes by default, and its older one at most.
OPSET, OLDER_OPSET = 20, 17

Feeds = Mapping[str, np.ndarray]


def save(root: Path, name: str, model: ModelProto | Path, feeds: Feeds) -> Path:
    """Write ``model.onnx`` and ``inputs.npz`` to ``root/name`` and return the model's path."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    if isinstance(model, Path):
        shutil.move(model, path)
    else:
        onnx.save(model, path)
    np.savez(folder / "inputs.npz", allow_pickle=False, **feeds)
    print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB", flush=True)
    return path


def feeds_of(root: Path, name: str) -> dict[str, np.ndarray]:
    """The inputs of a model that is written already."""
    return dict(np.load(root / name / "inputs.npz"))


def export(
    root: Path,
    name: str,
    module: nn.Module,
    given: Mapping[str, Tensor],
    outputs: list[str],
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    **options: Any,
) -> None:
    """Export a module with its newer exporter, or with its older one where `options` says ``dynamo=False``."""
    module.eval()
    path = root / f"{name}.tmp.onnx"
    root.mkdir(parents=True, exist_ok=True)
    newer = options.setdefault("dynamo", True)
    options.setdefault("opset_version", OPSET if newer else OLDER_OPSET)
    if newer:
        options |= {"external_data": False, "verbose": False}
        options["dynamic_shapes"] = tuple(dict((dynamic or {}).get(key, {})) for key in given) if dynamic else None
    else:
        options["dynamic_axes"] = {key: dict(axes) for key, axes in (dynamic or {}).items()}
    with torch.no_grad():
        torch.onnx.export(module, tuple(given.values()), path, input_names=list(given), output_names=outputs, **options)
    save(root, name, path, {key: np.asarray(value) for key, value in given.items()})
