# SPDX-License-Identifier: Apache-2.0
"""ONNX's cases are generated once for each release of what generates them."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx.backend.test import loader
from onnx.backend.test.case.test_case import TestCase

from backend_test import cases_once
from onnx_multi_backend.conformance import cases


def test_they_are_generated_once_for_each_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated = [case for case in cases.official_cases().values() if case.kind == "node"][:20]
    asked = []

    def load() -> list[TestCase]:
        asked.append(1)
        return generated

    assert cases_once.kept(load, tmp_path) is generated
    again = cases_once.kept(load, tmp_path)
    assert len(asked) == 1
    assert [case.name for case in again] == [case.name for case in generated]
    assert all(one.model == other.model for one, other in zip(again, generated, strict=True))
    monkeypatch.setattr("onnx.__version__", "another")
    cases_once.kept(load, tmp_path)
    assert len(asked) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_a_test_run_takes_them_from_there() -> None:
    loader.load_node_model_tests()
    assert list(cases_once.FOLDER.glob("*.pickle"))
