# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases, generated once and kept in ``build/cases``: that takes seconds, and each process of a test run needs them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test import loader
from onnx.backend.test.case.test_case import TestCase

from onnx_multi_backend.conformance.workers import worker

FOLDER = Path(__file__).parents[1] / "build" / "cases"

Load = Callable[[], list[TestCase]]


def _path(folder: Path) -> Path:
    """A file for each release of what generates them: Python, ONNX (onnx-weekly too) and what it computes with."""
    releases = sys.version, onnx.__version__, np.__version__, ml_dtypes.__version__
    return folder / f"{hashlib.sha256(repr(releases).encode()).hexdigest()[:16]}.pickle"


def kept(load: Load, folder: Path = FOLDER) -> list[TestCase]:
    """What `load` generates, from the folder where it is there."""
    path = _path(folder)
    with contextlib.suppress(FileNotFoundError):
        found: list[TestCase] = pickle.loads(path.read_bytes())
        return found
    made = load()
    folder.mkdir(parents=True, exist_ok=True)
    own = path.with_suffix(f".{os.getpid()}")
    own.write_bytes(pickle.dumps(made))
    own.replace(path)  # another process may read it
    return made


def keep() -> None:
    """Have this process take ONNX's cases of single operators from the folder."""
    loader.load_node_model_tests = functools.cache(functools.partial(kept, loader.load_node_model_tests))


def hand_on() -> None:
    """Have this process, and the one that its conformance workers are forked from, take them from the folder."""
    keep()
    worker.PRELOADED.insert(0, f"{__package__}.cases_preloaded")


def pytest_configure() -> None:
    hand_on()
