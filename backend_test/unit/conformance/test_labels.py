# SPDX-License-Identifier: Apache-2.0
"""One command, four backends in one report: real engines beside a backend with every way to fail."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from onnx.backend.test import BackendTest

import onnx_multi_backend as omb
from onnx_multi_backend.cli import main
from onnx_multi_backend.conformance import Label, Report

BAD = "examples.bad_backend.BadBackend"
OPERATORS = ("Abs", "Neg", "Ceil", "Floor", "Sin", "Sign", "Cos", "Tan", "BitShift", "ImageDecoder")
EXPECTED = """
[[xfail]]
name = "test_sin_cpu"
kind = "defect"
reason = "raises a bare RuntimeError"
"""


def _selected() -> str:
    return " or ".join(f"test_{name.lower()}_cpu" for name in OPERATORS) + " or test_add_bcast or test_image_decoder"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    usable = omb.availability()
    presets = [name for name in ("OrtCpu", "Openvino") if usable[name].usable]
    folder = tmp_path_factory.mktemp("run")
    (folder / "bad.toml").write_text(EXPECTED, encoding="utf-8")
    command = ["conformance", *(word for name in presets for word in ("--preset", name))]
    command += ["--backend", "onnxruntime.backend", "--backend", BAD, "--expectations", f"{BAD}=bad.toml"]
    command += ["-k", _selected(), "--kind", "node", "--timeout", "5", "--out", "out"]
    with contextlib.chdir(folder), pytest.raises(SystemExit) as exit_:
        main(command)
    assert exit_.value.code == 1
    return Report.read(folder / "out" / "report.json")


def test_every_label_of_the_bad_backend_is_the_one_it_earned(report: Report) -> None:
    labels = {case.name.removeprefix("test_").removesuffix("_cpu"): case.label for case in report.of(BAD)}
    assert {name: labels[name] for name in ("abs", "neg", "ceil", "floor", "sin", "sign", "cos", "tan")} == {
        "abs": Label.CRASH,
        "neg": Label.TIMEOUT,
        "ceil": Label.CRASH,
        "floor": Label.FAIL,
        "sin": Label.XFAIL,
        "sign": Label.SKIP,
        "cos": Label.UNSUPPORTED,
        "tan": Label.PASS,
    }
    assert labels["add_bcast"] == Label.PASS


def test_the_presets_tell_what_happened(report: Report) -> None:
    for name in set(report.backends) & {"OrtCpu", "Openvino"}:
        for case in report.of(name):
            here = {node.provider for node in case.placement}
            if case.label == Label.NATIVE:
                assert not case.adaptations
                assert len(here) == 1 or case.reason == "all nodes folded at load"
            elif case.label == Label.ADAPTED:
                assert {change.pass_name for change in case.adaptations} == set(case.reason.split(", "))
            else:
                assert case.label in (Label.UNSUPPORTED, Label.FAIL)
        counts = Counter(case.label for case in report.of(name))
        assert counts[Label.NATIVE] >= 8
        assert counts[Label.UNSUPPORTED] >= 1


def test_the_engines_own_backend_counts_as_in_the_stock_runner(report: Report) -> None:
    backend = pytest.importorskip("onnxruntime.backend")
    items = {name: item for group in BackendTest(backend)._test_items.values() for name, item in group.items()}
    for case in report.of("onnxruntime.backend"):
        try:
            items[case.name].func(None)
        except Exception:  # whatever it is, the stock runner does not count it as a pass
            assert not case.label.is_pass, case
        else:
            assert case.label == Label.PASS, case
