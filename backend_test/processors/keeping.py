# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: ``--keep-rewritten FOLDER`` writes down what the official suites had their cases rewritten into.

The emulated processors are shown the same models, so that what the suites had rewritten need not be rewritten for them again. Each process
writes one file for each preset; one that dies writes none, and its cases are rewritten later.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import onnx_multi_backend
from backend_test.processors.official import ADAPTED
from backend_test.processors.rewritten import Taken, recording
from onnx_multi_backend.adapt import lowering
from onnx_multi_backend.cli.conformance_plan import file_stem
from onnx_multi_backend.host.versions import installed_version

#: What the models are made with, beside this package.
_PACKAGES = ("numpy", "onnx", "onnxruntime", "openvino")


class Kept(NamedTuple):
    """What is known of some cases.

    Attributes
    ----------
    cases : set of str
        Those that ran; models that are not in `taken` need no rewriting.
    taken : dict
    """

    cases: set[str]
    taken: Taken


def read(folder: Path, preset: str) -> Kept:
    """Read what this very package, with these engines, wrote of a preset's cases; nothing of another one's."""
    kept = Kept(set(), {})
    for file in sorted(folder.glob(f"{preset}-*.pickle")):
        made_with, cases, taken = pickle.loads(file.read_bytes())
        if made_with == maker():
            kept.cases.update(cases)
            kept.taken.update(taken)
    return kept


@functools.cache
def maker() -> tuple[str, ...]:
    """This package's sources as a digest, and the releases of what it works with."""
    source = Path(onnx_multi_backend.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(source.rglob("*.py")):
        digest.update(f"{file.relative_to(source)}\0".encode() + file.read_bytes())
    return digest.hexdigest(), *(f"{name} {installed_version(name)}" for name in _PACKAGES)


class Keeper:
    """Records while a case of a suite runs.

    Parameters
    ----------
    folder : Path
    presets : sequence of str
        Those whose suites are recorded.
    """

    def __init__(self, folder: Path, presets: Sequence[str] = ADAPTED) -> None:
        self._folder = folder
        self._presets = {f"test_{file_stem(name)}.py": name for name in presets}
        self._kept = {name: Kept(set(), {}) for name in presets}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        preset = self._presets.get(item.path.name)
        if preset is None or not hasattr(getattr(item, "obj", None), "onnx_about"):
            return (yield)
        kept = self._kept[preset]
        kept.cases.add(item.name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lowering, "lower", recording(lowering.lower, kept.taken))
            return (yield)

    def pytest_sessionfinish(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        process = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        for preset, kept in self._kept.items():
            if kept.cases:
                (self._folder / f"{preset}-{process}.pickle").write_bytes(pickle.dumps((maker(), *kept)))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = (
        "write down what the official suites had rewritten, for `python -m backend_test.processors --rewritten FOLDER`"
    )
    parser.addoption("--keep-rewritten", type=Path, metavar="FOLDER", help=text)


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--keep-rewritten")
    if folder is None:
        return
    if "PYTEST_XDIST_WORKER" not in os.environ:  # before any of them begins
        shutil.rmtree(folder, ignore_errors=True)
    config.pluginmanager.register(Keeper(folder.resolve()))
