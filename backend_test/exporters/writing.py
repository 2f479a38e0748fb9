# SPDX-License-Identifier: Apache-2.0
"""Writing the models of one framework."""

from __future__ import annotations

import importlib
from pathlib import Path

SOURCES = ("pytorch", "scikit_learn")


def write(root: Path, source: str) -> None:
    """Write what one of `SOURCES` exports, and say what that is."""
    for exported in importlib.import_module(f"{__package__}.{source}").export():
        exported.write(root)
        opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in exported.model.opset_import)
        print(f"{root / exported.name}: {len(exported.model.graph.node)} nodes, opset {opsets}", flush=True)
