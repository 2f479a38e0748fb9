# SPDX-License-Identifier: Apache-2.0
"""The cells as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def line(entry: dict[str, Any]) -> str:
    """A cell in one line."""
    figures = [f"{key} {entry[key]:.2f}" for key in ("prepare_ratio", "run_ratio") if entry.get(key)]
    seconds = f"({entry['prepare'] * 1e3:.0f} ms, {entry['run'] * 1e3:.2g} ms)" if entry.get("run") else ""
    words = [entry["preset"], entry["model"]["name"], entry["verdict"], *figures, seconds, entry.get("why", "")[:400]]
    return " ".join(filter(None, words))


def document(root: Path) -> str:
    raise NotImplementedError
