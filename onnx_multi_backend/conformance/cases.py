# SPDX-License-Identifier: Apache-2.0
"""The official cases and their models, whatever backend runs them."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")

#: The stock runner's test class for each kind, so that a case goes by the same name here as there.
STOCK_CLASSES: Mapping[str, str] = {
    "node": "OnnxBackendNodeModelTest",
    "real": "OnnxBackendRealModelTest",
    "simple": "OnnxBackendSimpleModelTest",
    "pytorch-converted": "OnnxBackendPyTorchConvertedModelTest",
    "pytorch-operator": "OnnxBackendPyTorchOperatorModelTest",
}

_LIGHT = "onnx/backend/test/data/light/"


class Case(NamedTuple):
    """One official case on one device, ``test_abs_cpu``, and its kind."""

    name: str
    kind: str


#: The devices that ONNX's own suite knows: those of `onnx.backend.base.DeviceType`.
STANDARD_DEVICES = ("CPU", "CUDA")


def case_name(name: str, device: str) -> str:
    """Return what ONNX's runner calls a case on a device: ``test_abs_cpu``."""
    return f"{name}_{device.lower()}"


@functools.cache
def official_cases() -> Mapping[str, TestCase]:
    """Return ONNX's cases by their name without device, generated once a process (it takes some seconds)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # ONNX computes infinities on purpose
        cases = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return {case.name: case for case in cases}


def find_case(name: str) -> TestCase | None:
    """Return ONNX's case behind a name with device, ``test_abs_cpu``; None where there is no such case."""
    cases = official_cases()
    while "_" in name:  # a device may have underscores of its own
        name = name.rpartition("_")[0]
        if name in cases:
            return cases[name]
    return None


@functools.cache
def load_model(name: str) -> onnx.ModelProto:
    """Return the model of a case; shared, so not to be changed.

    Parameters
    ----------
    name : str
        The case with its device, ``test_abs_cpu``.

    Raises
    ------
    KeyError
        No official case has this name.
    FileNotFoundError
        The case would have to be downloaded (no case of today's ONNX has to).
    """
    case = find_case(name)
    if case is None:
        raise KeyError(f"no official ONNX case is named {name!r}")
    return model_of(case)


def model_of(case: TestCase) -> onnx.ModelProto:
    """Return the model of one of ONNX's cases; see `load_model`."""
    if case.model is not None:
        return case.model
    if case.model_dir is not None:
        return onnx.load(os.path.join(case.model_dir, "model.onnx"))
    if is_light(case):
        return onnx.load(Path(onnx.__file__).parent.parent / str(case.url))
    raise FileNotFoundError(f"the model of {case.name!r} is not part of the onnx package: {case.url}")


def is_light(case: TestCase) -> bool:
    """Whether the case is a "light" model: no weights, its inputs written to disk each time it runs."""
    return (case.url or "").startswith(_LIGHT)


@contextlib.contextmanager
def environment(name: str, value: str) -> Generator[None]:
    """Set one environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
