# SPDX-License-Identifier: Apache-2.0
"""Which presets run ONNX's official suite, and its cases, generated once: under emulation that would take a minute each time."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from onnx.backend.test import loader
from onnx.backend.test.case.test_case import TestCase

from onnx_multi_backend.conformance.cases import official_cases

#: The presets, and whether one is for processors of Intel alone.
PRESETS: Mapping[str, bool] = {"OrtCpu": False, "Openvino": False, "OrtOpenvinoFloat": True}


def write_cases(path: Path) -> None:
    """Generate the cases of single operators, and write them down; the others are files of the onnx package."""
    path.write_bytes(pickle.dumps([case for case in official_cases().values() if case.kind == "node"]))


def adopt_cases(path: Path) -> None:
    """Have this process take the cases of a file that `write_cases` wrote for those that ONNX would generate."""
    written: list[TestCase] = pickle.loads(path.read_bytes())
    loader.load_node_model_tests = lambda: written
