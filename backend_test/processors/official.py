# SPDX-License-Identifier: Apache-2.0
"""Which presets run ONNX's official suite, what is expected of them, and the suite's cases, generated once: under emulation that would
take a minute each time."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

from onnx.backend.test import loader
from onnx.backend.test.case.test_case import TestCase

from backend_test import cases_once
from backend_test.suite import baseline_path
from onnx_multi_backend.cli.conformance_plan import make_plans
from onnx_multi_backend.conformance import Baseline, Label, Plan, run
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import model_of, official_cases
from onnx_multi_backend.presets.registry import get_preset

#: The presets, and whether one is for processors of Intel alone.
PRESETS: Mapping[str, bool] = {"OrtCpu": False, "Openvino": False, "OrtOpenvinoFloat": True}

#: Those whose cases that pass adapted run on every emulated processor in `nox -s emulated`.
ADAPTED = ("Openvino", "OrtCpu")


def write_cases(path: Path) -> None:
    """Write down the cases of single operators, the others being files of the onnx package, and what is known of all cases."""
    cases_once.keep()
    cases = official_cases().values()
    facts = {case.name: CaseFacts.of(case.kind, model_of(case)) for case in cases}
    path.write_bytes(pickle.dumps(([case for case in cases if case.kind == "node"], facts)))


def adopt_cases(path: Path) -> None:
    """Have this process take the cases of a file that `write_cases` wrote for those that ONNX would generate, and what is known of them."""
    written: tuple[list[TestCase], dict[str, CaseFacts]] = pickle.loads(path.read_bytes())
    cases, facts = written
    loader.load_node_model_tests = lambda: cases
    run.describe_cases = lambda: facts


def plan(preset: str) -> tuple[Plan, Baseline]:
    """Plan a preset's suite, and read its baseline: an empty one where there is none. May load the engine."""
    (planned,), _ = make_plans([preset], None, None, {}, own_options=False, folder=None, file=None)
    path = baseline_path(Path(planned.source).stem, get_preset(preset).availability())
    return planned, Baseline.read(path) if path.exists() else Baseline(preset)


def adapted_cases(preset: str) -> list[str]:
    """The cases that pass adapted on a preset, by its baseline."""
    _, baseline = plan(preset)
    return [case for case, label in baseline.labels.items() if label == Label.ADAPTED]


def share_of(names: Sequence[str], share: str) -> list[str]:
    """The names that fall to share I of N by their hash, written ``I/N``: each in one share, today as tomorrow."""
    number, count = map(int, share.split("/"))
    return [name for name in names if crc32(name.encode()) % count == number]
