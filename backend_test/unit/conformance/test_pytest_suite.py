# SPDX-License-Identifier: Apache-2.0
"""Plugged into pytest: outcomes, reports for each backend apart, baselines, and the same under xdist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onnx_multi_backend
from onnx_multi_backend.conformance import Report
from onnx_multi_backend.host.processor import current

ROOT = Path(onnx_multi_backend.__file__).parents[1]
CONFTEST = """
from backend_test.unit.conformance.toys import generate_only
generate_only("abs", "ceil", "erf", "exp", "floor", "neg", "round", "sign", "sin", "tan")
pytest_plugins = ["onnx_multi_backend.conformance.pytest_plugin"]
"""
MODULE = """
from pathlib import Path
from backend_test.unit.conformance.toys import {backend}
from onnx_multi_backend.conformance.pytest_suite import plug
here = Path(__file__).parent
globals().update(plug({backend}, module=__name__, {options}))
"""
FILES = 'expectations=here / "toy.toml", baseline=here / "toy.json"'
ENTRIES = """
[[xfail]]
names = ["test_exp_cpu", "test_exp_example_cpu"]
reason = "explodes"
kind = "defect"
[[skip]]
glob = "test_tan*"
reason = "kills the process"
kind = "defect"
"""
# 16 cases of the ten operators: abs 1, ceil 2, erf 1, exp 2, floor 2, neg 2, round 1, sign 1, sin 2, tan 2


def run(folder: Path, *options: str, select: str = "NodeModel or Expectations") -> tuple[int, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "ignore", "-k", select, *options]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def outcomes(output: str) -> dict[str, int]:
    last = output.rstrip().splitlines()[-1]
    return {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", last)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "toy.toml").write_text(ENTRIES)
    (tmp_path / "test_talking.py").write_text(MODULE.format(backend="TalkingBackend", options=FILES))
    return tmp_path


def test_two_backends_are_reported_apart_and_xdist_changes_nothing(folder: Path) -> None:
    (folder / "test_plain.py").write_text(MODULE.format(backend="PlainBackend", options=""))
    code, alone = run(folder, "--onnx-report", "alone")
    assert code == 0, alone
    assert outcomes(alone) == {"passed": 16 + 5 + 2, "skipped": 9, "xfailed": 2}
    assert re.search(r"ONNX conformance: Plain -+\n|ONNX conformance: Plain =+\n", alone), alone
    assert "16 cases: 16 pass\n" in alone
    assert "16 cases: 2 native, 2 adapted, 1 fallback, 4 unsupported, 2 xfail, 5 skip\n" in alone
    assert "Operators (passed/loaded/total): 10/10/" in alone
    assert "Operators (passed/loaded/total): 4/10/" in alone

    pytest.importorskip("xdist")
    code, shared = run(folder, "-n", "2", "-q", "--onnx-report", "shared")
    assert code == 0, shared
    assert outcomes(shared) == outcomes(alone)
    assert "16 cases: 2 native, 2 adapted, 1 fallback, 4 unsupported, 2 xfail, 5 skip\n" in shared
    assert "Operators (passed/loaded/total): 4/10/" in shared
    assert " Abs " not in shared  # quiet: the headline without the table

    def labels(name: str) -> dict[tuple[str, str], str]:
        return {(c.backend, c.name): c.label for c in Report.read(folder / name / "report.json").cases}

    assert labels("alone") == labels("shared")
    assert len(labels("alone")) == 32


@pytest.mark.parametrize("options", [(), ("-n", "2", "--log-level", "DEBUG")])
def test_a_message_that_is_no_unicode_fails_its_case_alone(folder: Path, options: tuple[str, ...]) -> None:
    pytest.importorskip("xdist")
    (folder / "test_talking.py").unlink()
    ref = "backend_test.unit.conformance.odd_backends import SpeaksNoUnicode"
    (folder / "test_odd.py").write_text(
        f"from {ref}\nfrom onnx_multi_backend.conformance.pytest_suite import plug\n"
        "globals().update(plug(SpeaksNoUnicode, module=__name__))\n"
    )
    code, output = run(folder, *options, "--onnx-report", "report")
    assert code == 1, output
    assert "INTERNALERROR" not in output
    assert outcomes(output) == {"failed": 16, "passed": 1}, output
    cases = Report.read(folder / "report" / "report.json").cases
    assert {c.error for c in cases} == {"ValueError: cannot read \\udc80"}


def test_a_foreign_backend_says_its_version_under_pytest_too(folder: Path) -> None:
    (folder / "test_talking.py").unlink()
    (folder / "test_odd.py").write_text(
        "from backend_test.unit.conformance.odd_backends import SaysItsVersion\n"
        "from onnx_multi_backend.conformance.pytest_suite import plug\n"
        "globals().update(plug(SaysItsVersion, module=__name__))\n"
    )
    code, output = run(folder, "--onnx-report", "report")
    assert code == 0, output
    (backend,) = Report.read(folder / "report" / "report.json").backends.values()
    assert backend.engine == "Odd Engine 1.2 beta"


def test_reasons_are_shown(folder: Path) -> None:
    _, output = run(folder, "-rsx")
    for reason in ("unsupported: the toy has no Floor", "kills the process [defect]", "explodes [defect]", "no Sin"):
        assert reason in output


def test_a_failure_without_an_expectation_fails(folder: Path) -> None:
    (folder / "toy.toml").write_text("")
    code, output = run(folder)
    assert code == 1
    assert outcomes(output)["failed"] == 4
    assert "Talking test_exp_cpu: fail: ValueError: exploded" in output


def test_expectations_are_strict_both_ways(folder: Path) -> None:
    (folder / "toy.toml").write_text(
        ENTRIES.replace('"test_exp_cpu"', '"test_exp_cpu", "test_abs_cpu", "test_floor_cpu", "test_gone_cpu"')
    )
    code, output = run(folder)
    assert code == 1
    assert outcomes(output)["failed"] == 3
    assert "Talking test_abs_cpu: unexpected pass (native)" in output
    assert "Talking test_floor_cpu: needs no expectation" in output
    assert "[[xfail]] number 1: no case is named 'test_gone_cpu'" in output


def test_a_stale_expectation_is_a_problem_of_the_report(folder: Path) -> None:
    (folder / "toy.toml").write_text(ENTRIES.replace('"test_exp_cpu"', '"test_exp_cpu", "test_gone_cpu"'))
    code, _ = run(folder, "--onnx-report", "out")
    assert code == 1
    report = Report.read(folder / "out" / "report.json")
    (problem,) = report.backends["Talking"].problems
    assert problem.endswith("[[xfail]] number 1: no case is named 'test_gone_cpu'")
    assert not report.as_expected


def test_a_case_that_takes_its_xdist_process_along_is_a_crash_in_the_report(folder: Path) -> None:
    pytest.importorskip("xdist")
    (folder / "test_talking.py").unlink()
    backend = "examples.bad_backend.BadBackend"
    options = ("--pyargs", "onnx_multi_backend.conformance", "--onnx-backend", backend, "--onnx-report", "out")
    code, output = run(folder, *options, "-n", "1", select="test_abs_cpu or test_exp_cpu")
    assert code == 1, output
    report = Report.read(folder / "out" / "report.json")
    assert {case.name: case.label for case in report.cases} == {"test_abs_cpu": "crash", "test_exp_cpu": "pass"}
    (crash,) = report.unexpected
    assert crash.headline.startswith("worker 'gw0' crashed while running ")
    assert set(report.models) == {"test_abs_cpu", "test_exp_cpu"}


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_a_backend_is_found_in_the_working_directory(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """The command `pytest` does not look there by itself, nor does Python with -P."""
    if processes:
        pytest.importorskip("xdist")
    (tmp_path / "own_backend.py").write_text("from examples.toy_backend import ToyBackend\n")
    options = ("--pyargs", "onnx_multi_backend.conformance", "--onnx-backend", "own_backend.ToyBackend", *processes)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": str(ROOT)}
    plugins = ("-p", "no:cacheprovider", "-p", "backend_test.unit.conformance.few_cases")
    command = [sys.executable, "-P", "-m", "pytest", *plugins, "-k", "test_abs_cpu", *options]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(done.stdout)["passed"] == 1


ODD = "backend_test.unit.conformance.odd_backends"


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name the backend: --onnx-backend package.module"),
        (("--onnx-backend", "no.such.backend"), "'no.such.backend': there is no module 'no' here."),
        (("--onnx-backend", "backend_test.unit.conformance.exits_at_import"), "cannot be imported: SystemExit: 5."),
        (("--onnx-backend", f"{ODD}.OddBackend", "--onnx-device", "CUDA"), "does not support the device 'CUDA' here."),
        (("--onnx-backend", f"{ODD}.OddBackend", "--onnx-expectations", "bad"), "bad: not TOML: "),
        (("--onnx-backend", f"{ODD}.OddBackend", "--onnx-baseline", "bad"), "bad: not a baseline "),
    ],
)
def test_wrong_use_is_one_line(
    folder: Path, options: tuple[str, ...], message: str, processes: tuple[str, ...]
) -> None:
    if processes:
        pytest.importorskip("xdist")
    (folder / "bad").write_text("no file of any kind")
    code, output = run(folder, "--pyargs", "onnx_multi_backend.conformance", *options, *processes)
    (line,) = output.split("\n\n")[0].strip().splitlines()
    assert code == pytest.ExitCode.USAGE_ERROR
    assert line.startswith("ERROR: ")
    assert message in line


def test_a_backend_may_be_an_instance(folder: Path) -> None:
    options = ("--pyargs", "onnx_multi_backend.conformance", "--onnx-backend", f"{ODD}.instance")
    code, output = run(folder, *options, "--onnx-report", "out", select="test_abs_cpu")
    assert code == 0, output
    assert Report.read(folder / "out" / "report.json").backends[f"{ODD}.instance"].path == f"{ODD}.instance"


def test_a_case_that_got_worse_fails_until_the_baseline_is_updated(folder: Path) -> None:
    baseline = folder / "toy.json"
    _, output = run(folder, select="test_sign or test_abs")
    assert "no baseline yet" in output
    code, output = run(folder, "--onnx-update-baselines")
    assert code == 0, output
    written = json.loads(baseline.read_text())
    assert written["cases"]["test_sign_cpu"] == "fallback"
    assert len(written["cases"]) == 16
    assert written["backend"] == "Talking"
    assert set(written["engines"]) == {"onnx"}

    written["cases"] |= {"test_sign_cpu": "native", "test_abs_cpu": "adapted", "test_of_yesterday_cpu": "native"}
    written["engines"]["onnx"] = "1.0"
    baseline.write_text(json.dumps(written))
    code, output = run(folder)
    assert code == 1
    assert outcomes(output)["failed"] == 1
    assert "Talking test_sign_cpu: was native, is fallback: Sign 'n0' on CPUExecutionProvider" in output
    assert "made with onnx 1.0, now" in output
    assert "1 worse, 1 better" in output

    code, output = run(folder, "--onnx-update-baselines", select="test_sign")
    assert code == 0, output
    cases = json.loads(baseline.read_text())["cases"]
    assert cases["test_sign_cpu"] == "fallback"
    assert cases["test_abs_cpu"] == "adapted"  # not run, so kept
    assert "test_of_yesterday_cpu" not in cases


def test_what_is_expected_of_this_processor_alone_is_not_worse_than_another_ones_baseline(folder: Path) -> None:
    """The baseline says that exp passed elsewhere; here it is expected to fail, and nowhere else."""
    code, output = run(folder, "--onnx-update-baselines", select="NodeModel and test_exp")
    assert code == 0, output
    written = json.loads((folder / "toy.json").read_text())
    here = current()
    assert written["processor"]["vendor"] == here.vendor
    assert written["processor"]["instruction_sets"] == list(here.telling)
    written["cases"] = dict.fromkeys(written["cases"], "native")
    written["processor"]["vendor"] = "GenuineTransmeta"
    (folder / "toy.json").write_text(json.dumps(written))

    code, output = run(folder, select="NodeModel and test_exp")
    assert code == 1, "an expectation for all processors is new against any baseline"
    assert outcomes(output)["failed"] == 2
    assert f"(another processor: was {here.name} (GenuineTransmeta, " in output

    entries = ENTRIES.replace("[[skip]]", f"when = {{vendor = '{here.vendor}'}}\n[[skip]]")
    (folder / "toy.toml").write_text(entries)
    code, output = run(folder, select="NodeModel and test_exp")
    assert code == 0, output
    assert outcomes(output)["xfailed"] == 2
    assert "0 worse, 0 better; 2 worse as the expectations for this processor say; another processor: was" in output


def test_a_backend_that_is_not_usable_here_is_one_skip_with_the_reason(folder: Path) -> None:
    (folder / "test_talking.py").write_text(MODULE.format(backend="TalkingBackend", options='unusable="no GPU"'))
    code, output = run(folder, "-rs", select="test")
    assert code == 0, output
    assert outcomes(output) == {"skipped": 1}
    assert "no GPU" in output


def test_a_malformed_file_stops_the_collection_with_its_name(folder: Path) -> None:
    (folder / "toy.toml").write_text("[[xfail]]\nname = 'test_abs_cpu'\n")
    code, output = run(folder)
    assert code == 2
    assert "toy.toml: [[xfail]] number 1: a reason is required" in output
