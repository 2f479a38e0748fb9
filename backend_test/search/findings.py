# SPDX-License-Identifier: Apache-2.0
"""Findings as folders, one for each signature, and the list of those that are known."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: Lists of known findings, one file a tool.
KNOWN = Path(__file__).parent / "known"


@dataclass
class Finding:
    """What is wrong with one model on one preset.

    Attributes
    ----------
    signature : str
        What findings of one cause share.
    model : bytes
    feeds : list of dict
        The inputs of each run.
    report : str
    """

    signature: str
    category: str
    model: bytes
    report: str
    feeds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """The name of its folder."""
        word = re.sub(r"[^A-Za-z0-9.*_+()-]+", "-", self.signature)[:80].strip("-")
        return f"{word}-{hashlib.sha256(self.signature.encode()).hexdigest()[:8]}"

    def write(self, root: Path) -> Path:
        """Write model, inputs and report; a folder that is there already is left as it is."""
        folder = root / self.folder
        if folder.exists():
            return folder
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model)
        for number, fed in enumerate(self.feeds):
            _save(folder / f"inputs_{number}.npz", fed)
        (folder / "report.txt").write_text(f"{self.signature}\n\n{self.report}\n", encoding="utf-8")
        return folder


def _save(path: Path, fed: dict[str, Any]) -> None:
    """Write arrays; text and the types that numpy lacks as JSON beside them, since npz would pickle them."""
    plain = {n: a for n, a in fed.items() if isinstance(a, np.ndarray) and a.dtype.kind in "biuf"}
    np.savez(path, **plain)  # type: ignore[arg-type]
    others = {n: a for n, a in fed.items() if n not in plain}
    if others:
        text = {
            n: {"dtype": str(getattr(a, "dtype", "")), "shape": list(np.shape(a)), "values": _text(a)}
            for n, a in others.items()
        }
        path.with_suffix(".json").write_text(json.dumps(text, indent=1), encoding="utf-8")


def _text(array: Any) -> list[Any]:
    found = np.asarray(array)
    return [str(x) for x in found.ravel()] if found.dtype == object else [float(x) for x in found.ravel()]


def known_reason(signature: str, path: Path) -> str:
    """Why a finding is known; empty when it is not.

    Parameters
    ----------
    path : Path
        A TOML file of ``[[finding]]`` tables with ``signature`` (a pattern of `fnmatch`) and ``reason``.
    """
    return next((reason for pattern, reason in _known(path) if fnmatch.fnmatchcase(signature, pattern)), "")


@functools.cache
def _known(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("finding", [])
    return [(str(t["signature"]), str(t["reason"])) for t in tables]
