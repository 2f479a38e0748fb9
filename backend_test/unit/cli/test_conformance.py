# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend conformance``, on a few of its cases."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onnx_multi_backend as omb
from backend_test.unit.cli.conftest import Cli
from backend_test.unit.conformance.odd_backends import LOADS_A_FEW_TIMES
from onnx_multi_backend.cli import conformance_files, conformance_plan, progress
from onnx_multi_backend.conformance import Report


@pytest.fixture
def expectations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the expectations that come with the package."""
    folder = tmp_path / "expectations"
    folder.mkdir()
    monkeypatch.setattr(conformance_plan, "FOLDER", folder)
    return folder


def _expect(folder: Path, name: str, *, action: str = "xfail", file: str = "ort_cpu") -> None:
    entry = f'[[{action}]]\nname = "{name}"\nreason = "the reason"\nkind = "defect"\n'
    (folder / f"{file}.toml").write_text(entry, encoding="utf-8")


BAD = ("--backend", "examples.bad_backend.BadBackend")


def test_counts_and_coverage_are_printed(cli: Cli) -> None:
    done = cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node", "--coverage")
    assert done.code == 0
    engine = omb.availability()["OrtCpu"].engine
    assert done.out.startswith(f"OrtCpu on CPU, {engine}\n")
    assert "  result        1 case, 1 passed: 1 native\n" in done.out
    assert "Operators (passed/loaded/total): 1/1/" in done.out
    assert "\nai.onnx   Relu " in done.out
    summary = done.out.split("Summary\n")[1].splitlines()
    assert summary[0].split()[:4] == ["Backend", "Device", "Cases", "Passed"]
    assert summary[1].split()[:2] == ["OrtCpu", "CPU"]


def test_what_is_printed_fits_on_a_page(cli: Cli) -> None:
    done = cli("conformance", "-k", "castlike or string or unique or cumsum", "--kind", "node")
    assert len(done.out.splitlines()) <= 60
    assert "Operators (passed/loaded/total): " in done.out
    assert "---------- onnx coverage" not in done.out
    assert "`onnx-multi-backend inspect` compares them" not in done.out
    assert "  Ort: run it with --preset Ort: with the CPU provider it repeats OrtCpu\n" in done.out
    if omb.OpenvinoBackend.availability().usable:
        assert " unsupported: it lacks " in done.out


def test_every_usable_preset_is_run_and_the_others_named_with_their_reason(cli: Cli) -> None:
    done = cli("conformance", "-k", "test_relu_cpu", "--kind", "node")
    assert done.code == 0
    summary, _, left_out = done.out.split("Summary\n")[1].partition("\nNot run\n")
    run = {line.split()[0] for line in summary.splitlines()[1:]}
    usable = {name for name, state in omb.availability().items() if state.usable} - {"OrtTensorrtInt8", "Ort"}
    assert run == usable
    named = {name for line in left_out.splitlines() for name in line.split(": ")[0].strip().split(", ")}
    assert named == set(omb.presets()) - usable
    assert "OrtTensorrtInt8: needs --option calibration_table=VALUE" in left_out


def test_a_failure_that_nobody_expects_is_shown_and_is_exit_code_1(cli: Cli) -> None:
    done = cli("conformance", *BAD, "-k", "test_floor_cpu")
    assert done.code == 1
    assert "  not as expected: 1\n" in done.out
    assert "    test_floor_cpu: fail: AssertionError: Not equal to tolerance" in done.out


def test_an_expected_failure_is_an_xfail(cli: Cli, tmp_path: Path) -> None:
    _expect(tmp_path, "test_floor_cpu", file="bad")
    options = ("--expectations", str(tmp_path / "bad.toml"), "-k", "test_floor_cpu")
    done = cli("conformance", *BAD, *options)
    assert done.code == 0
    assert "1 case, 0 passed: 1 xfail" in done.out
    assert str(tmp_path / "bad.toml") in done.out
    both = cli("conformance", *BAD, "--backend", "examples.toy_backend.ToyBackend", *options)
    assert "write NAME=FILE, with NAME one of examples.bad_backend.BadBackend, examples.toy" in both.error()
    named = (f"{BAD[1]}={tmp_path / 'bad.toml'}", "-k", "test_floor_cpu")
    both = cli("conformance", *BAD, "--backend", "examples.toy_backend.ToyBackend", "--expectations", *named)
    assert both.code == 0


def test_a_draft_of_expectations_makes_the_next_run_as_expected(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    options = (*BAD, "-k", "test_floor or test_sin_ or test_abs or test_cos_", "--jobs", "2")
    assert cli("conformance", *options, "--write-expectations", str(file)).code == 1
    done = cli("conformance", *options, "--expectations", str(file))
    assert done.code == 0, done.out
    assert "the file exists" in cli("conformance", *options, "--write-expectations", str(file)).error()


def test_every_form_of_the_report_is_written_and_reports_can_be_merged_and_compared(cli: Cli, tmp_path: Path) -> None:
    toy = ("--backend", "examples.toy_backend.ToyBackend", "-k", "test_floor_cpu")
    assert cli("conformance", *toy, "--out", str(tmp_path / "a"), "--scoreboard-dir", str(tmp_path / "board")).code == 0
    assert cli("conformance", *BAD, "-k", "test_floor_cpu", "--out", str(tmp_path / "b")).code == 1
    files = {"report.json", "index.html", "summary.md", "junit.xml", "operators.json", "nodes.csv", "models.csv"}
    assert {f.name for f in (tmp_path / "a").iterdir()} == files
    board = {"report.json", "ops.json", "nodes.csv", "models.csv", "metadata.csv", "pip-list.json"}
    assert {f.name for f in (tmp_path / "board").iterdir()} == board

    reports = [str(tmp_path / name / "report.json") for name in "ab"]
    done = cli("conformance", "--merge", *reports, "--out", str(tmp_path / "all"))
    assert done.code == 1
    assert list(Report.read(tmp_path / "all" / "report.json").backends) == [toy[1], BAD[1]]
    twice = cli("conformance", "--merge", reports[0], str(tmp_path / "a")).error()
    assert f"{reports[0]} and {tmp_path / 'a'}" in twice

    worse = tmp_path / "old.json"
    worse.write_text(Path(reports[1]).read_text().replace('"label": "fail"', '"label": "pass"'), encoding="utf-8")
    compared = ("--compare", str(worse), "--fail-on", "regressions", "--out", str(tmp_path / "compared"))
    done = cli("conformance", "--merge", reports[1], *compared)
    assert done.code == 1
    assert "1 worse, 0 better, 0 other changes" in done.out
    for file in ("index.html", "summary.md"):
        assert "1 worse, 0 better, 0 other changes" in (tmp_path / "compared" / file).read_text(encoding="utf-8")
    assert f"newly failing: {BAD[1]} test_floor_cpu: pass -> fail: AssertionError" in done.out
    done = cli("conformance", "--merge", reports[1], "--compare", reports[1], "--fail-on", "regressions")
    assert done.code == 0


ODD = "backend_test.unit.conformance.odd_backends"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("--backend", "no.such.backend"), "'no.such.backend': there is no module 'no' here."),
        (("--backend", f"{ODD}.LacksEveryDevice"), f"'{ODD}.LacksEveryDevice' does not support the device 'CPU' here."),
    ],
)
def test_nothing_is_run_when_one_of_the_backends_cannot_be_used(
    cli: Cli, tmp_path: Path, second: tuple[str, ...], message: str
) -> None:
    first = ("--backend", "examples.toy_backend.ToyBackend", "-k", "test_relu_cpu")
    done = cli("conformance", *first, *second, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith(f"error: {message}")
    assert not (tmp_path / "out").exists()


def test_a_backend_that_cannot_be_loaded_again_is_in_the_report(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "licensed_here.py").write_text(LOADS_A_FEW_TIMES.format(times=1))
    monkeypatch.syspath_prepend(tmp_path)
    names = "test_abs_cpu or test_ceil_cpu or test_cos_cpu"
    options = ("-k", names, "--kind", "node", "--jobs", "1", "--out", tmp_path / "out")
    done = cli("conformance", "--backend", "licensed_here.Licensed", *options)
    assert done.code == 1
    assert "1 passed: 1 pass, 2 crash" in done.out
    report = Report.read(tmp_path / "out" / "report.json")
    assert "the licence is in use" in report.of("licensed_here.Licensed")[2].reason


def test_a_terminal_that_cannot_write_a_name_costs_no_report(tmp_path: Path) -> None:
    command = ("-m", "backend_test.command", "conformance", "--backend", f"{ODD}.Réseau", "-k", "test_relu_cpu")
    root = str(Path(omb.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": root, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, *command, "--out", "out"], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rb"odd_backends.R\xe9seau on CPU" in done.stdout
    assert list(Report.read(tmp_path / "out" / "report.json").backends) == [f"{ODD}.Réseau"]


def test_a_case_to_skip_is_not_run(cli: Cli, expectations: Path) -> None:
    _expect(expectations, "test_relu_cpu", action="skip")
    assert "0 passed: 1 skip" in cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node").out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test_relu_cpu", "test_relu_cpu: unexpected pass (native): remove it from "),
        ("test_nothing_cpu", "[[xfail]] number 1: no case is named 'test_nothing_cpu'"),
    ],
)
def test_an_expectation_that_does_not_hold_is_exit_code_1(
    cli: Cli, expectations: Path, name: str, message: str
) -> None:
    _expect(expectations, name)
    done = cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node")
    assert done.code == 1
    assert message in done.out


def test_other_options_may_mend_a_known_failure(cli: Cli, expectations: Path) -> None:
    _expect(expectations, "test_relu_cpu")
    done = cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node", "--fallback", "full")
    assert done.code == 0
    assert "  options       fallback=full\n" in done.out
    _expect(expectations, "test_relu_cpu", file="ort_cpu_full")  # unless the file is meant for them
    assert (
        cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node", "--fallback", "full").code
        == 1
    )


def test_progress_off_a_terminal_is_a_line_now_and_then(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("conformance", "--preset", "OrtCpu", "-k", "test_relu").err.count("\n") == 1
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    err = cli("conformance", "--preset", "OrtCpu", "-k", "test_relu_cpu", "--kind", "node").err
    assert "OrtCpu: 1 of 1 cases in " in err
    assert "\x1b" not in err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits what a process holds")
def test_a_case_beyond_the_memory_fails(cli: Cli) -> None:
    hoards = ("--backend", "backend_test.unit.conformance.odd_backends.Hoards")
    done = cli("conformance", *hoards, "-k", "test_abs_cpu or test_sub_cpu", "--memory", "3GiB")
    assert done.code == 1
    assert "1 fail: more memory is needed than the 3,072 MiB that a process may have" in done.out
    assert "2 cases, 1 passed" in done.out


def test_a_backend_is_shown_with_the_version_that_it_says(cli: Cli) -> None:
    done = cli(
        "conformance", "--backend", "backend_test.unit.conformance.odd_backends.SaysItsVersion", "-k", "test_abs_cpu"
    )
    assert done.code == 0
    assert "odd_backends.SaysItsVersion on CPU, Odd Engine 1.2 beta\n" in done.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to catch")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)])
def test_a_run_that_is_stopped_writes_what_is_known(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: signal.Signals
) -> None:
    monkeypatch.setattr(progress.RunProgress, "result", lambda *_: signal.raise_signal(how))
    monkeypatch.setattr(progress.RunProgress, "finished", lambda *_: signal.raise_signal(how))  # impatient
    before = signal.getsignal(how)
    done = cli("conformance", *BAD, "-k", "test_add_cpu or test_neg_cpu", "--jobs", "1", "--out", str(tmp_path / "out"))
    assert done.code == 130
    assert "Summary, interrupted: cases are missing" in done.out
    report = Report.read(tmp_path / "out" / "report.json")
    assert report.interrupted
    assert [case.name for case in report.cases] == ["test_add_cpu"]
    assert signal.getsignal(how) == before


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupt_while_cases_are_collected_leaves_no_traceback() -> None:
    command = [sys.executable, "-m", "onnx_multi_backend", "conformance", *BAD]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while len(_children(run.pid)) < 2 and time.monotonic() < deadline:  # Python's tracker, and the fork server
            time.sleep(0.02)
        time.sleep(1)
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130
    assert "Traceback" not in err
    assert "Summary, interrupted" in out


def _children(parent: int) -> list[str]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if status.read_text().rpartition(")")[2].split()[1] == str(parent):
                found.append(status.parent.name)
    return found


def test_what_cannot_be_written_is_shown(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "report.json")

    monkeypatch.setattr(conformance_files, "write_reports", fail)
    done = cli("conformance", *BAD, "-k", "test_add_cpu", "--out", tmp_path / "out")
    assert done.code == 2
    assert "1 case, 1 passed" in done.out
    assert "written: " not in done.out
    assert done.err.splitlines()[-1] == "error: 'report.json': No space left on device."


@pytest.mark.parametrize(
    ("option", "path"),
    [
        ("--out", "file"),
        ("--out", "file/new/folder"),
        ("--scoreboard-dir", "file"),
        ("--write-expectations", "file/bad.toml"),
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_the_run(
    cli: Cli, tmp_path: Path, option: str, path: str
) -> None:
    (tmp_path / "file").write_text("")
    assert cli("conformance", *BAD, option, path).error().startswith(f"{option} {path}: nothing can be written there: ")
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


def test_regressions_of_what_is_in_no_report_are_an_error(cli: Cli, tmp_path: Path) -> None:
    toy = ("--backend", "examples.toy_backend.ToyBackend")
    assert cli("conformance", *toy, "-k", "test_floor_cpu", "--out", tmp_path / "old").code == 0
    compare = ("--compare", tmp_path / "old" / "report.json", "--fail-on", "regressions")
    done = cli("conformance", *toy, "-k", "test_add_cpu", *compare)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("error: --fail-on regressions: no case of a backend of the same name")
    assert "1 case of examples.toy_backend.ToyBackend in the old report alone" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "no.such", "-k", "relu (abs)"], "-k 'relu (abs)' is not an expression"),
        (["--backend", "no.such", "--timeout", "inf"], "A timeout is more than 0 and at most 86400 seconds"),
        (["--backend", "no.such", "--timeout", "nan"], "Invalid value for '--timeout'"),
        (["--backend", "no.such", "--timeout", "99999999999"], "A timeout is more than 0 and at most 86400 seconds"),
        (["--preset", "Nope"], "There is no preset 'Nope'."),
        (["--preset", "OrtTensorrtInt8"], "OrtTensorrtInt8 needs --option calibration_table=VALUE"),
        (["--preset", "OrtCpu", "--device", "CUDA"], "OrtCpu has no device 'CUDA'."),
        (["--preset", "OrtCpu", "--option", "speed=9"], "OrtCpu has no option 'speed'."),
        (["--preset", "OrtCpu", "-k", "nosuchcase"], "No case matches -k 'nosuchcase'."),
        (["--preset", "OrtCpu", "--operator", "relu"], "No case has the operator 'relu'. Did you mean"),
        (["--backend", "no.such.backend"], "'no.such.backend': there is no module 'no' here."),
        (
            ["--backend", "examples.toy_backend.ToyBackend", "--device", "CUDA"],
            "'examples.toy_backend.ToyBackend' does",
        ),
        (["--backend", "examples.toy_backend.ToyBackend", "--device", ""], "--device is empty"),
        (["--preset", "OrtCpu", "--device", ""], "--device is empty"),
        (["--backend", "onnx.helper"], "'onnx.helper' has no prepare"),
        (["--backend", "examples.toy_backend.ToyBackend", "--fallback", "full"], "--option and --fallback are for"),
        (["report.json"], "report.json: reports are given with --merge."),
        (["--merge"], "--merge needs the report.json"),
        (["--merge", "nowhere.json"], "'nowhere.json': No such file"),
        (
            [*BAD, "--expectations", "nowhere.toml"],
            "--expectations nowhere.toml: there is no such file. --write-expectations",
        ),
        ([*BAD, "--memory", "lots"], "A limit of memory is a size such as 2GiB or 800MB, not 'lots'."),
        (["--merge", "a.json", "--domain", "ai.onnx"], "--domain is for a run, and --merge runs nothing."),
        (["--merge", "a.json", "--jobs", "2"], "--jobs is for a run, and --merge runs nothing."),
        (["--compare", "nowhere.json"], "'nowhere.json': No such file"),
        (["--fail-on", "regressions"], "--fail-on regressions goes with --compare"),
        (["--expectations-dir", "nowhere"], "--expectations-dir nowhere: there is no such folder."),
    ],
)
def test_wrong_use_is_an_error(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("conformance", *arguments)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"error: {message}")


def test_a_damaged_file_of_expectations_is_an_error(cli: Cli, expectations: Path) -> None:
    (expectations / "ort_cpu.toml").write_text("[[xfail]]\n", encoding="utf-8")
    assert "give one of name, names and glob" in cli("conformance", "--preset", "OrtCpu").error()


def test_a_device_that_is_not_there_is_an_error(cli: Cli, no_gpu: None) -> None:
    assert cli("conformance", "--preset", "OrtCuda").error().startswith("OrtCuda cannot run on CUDA:0: ")
