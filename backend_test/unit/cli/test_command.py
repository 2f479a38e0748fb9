# SPDX-License-Identifier: Apache-2.0
"""What all commands share: help, errors in one line, warnings in one line, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.cli import presets

COMMANDS = ("presets", "inspect", "run", "calibrate", "quantize", "conformance")


def test_the_command_alone_shows_its_help(cli: Cli) -> None:
    done = cli()
    assert done.code == 0
    assert all(f"\n  {name} " in done.out for name in COMMANDS)
    assert "..." not in done.out.split("Commands:")[1]  # no summary is cut


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_helps_with_examples(cli: Cli, command: str) -> None:
    done = cli(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Examples:\n    onnx-multi-backend {command}" in done.out


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").out == f"onnx-multi-backend {omb.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runn"], "No such command 'runn'. Did you mean 'run'? See 'onnx-multi-backend --help'."),
        (["run"], "Missing argument 'MODEL'. See 'onnx-multi-backend run --help'."),
        (["run", "m", "--randon"], "No such option: --randon (Possible options: --random) See"),
        (["run", "m", "--seed", "one"], "Invalid value for '--seed': "),
        (["run", "m", "--fallback", "some"], "Invalid value for '--fallback': 'some' is not one of 'partial',"),
        (["inspect", "m", "n"], "Got unexpected extra argument"),
        (["presets", "--json=1"], "Option '--json' does not take a value. See"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(cli: Cli, arguments: list[str], message: str) -> None:
    assert cli(*arguments).error().startswith(message)


@pytest.mark.parametrize("where", [0, 1, 3])
def test_debug_anywhere_shows_the_traceback_too(cli: Cli, where: int) -> None:
    arguments = ["run", "missing.onnx", "--random"]
    done = cli(*arguments[:where], "--debug", *arguments[where:])
    assert done.code == 2
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1].startswith("error: There is no file ")


def test_a_fault_of_ours_is_one_line_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(presets, "availability", broken)
    assert "ZeroDivisionError: by zero" in (line := cli("presets").error())
    assert "--debug" in line


def test_an_interrupt_is_no_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(presets, "availability", interrupted)
    assert cli("presets") == (130, "", "")


def test_a_warning_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def warns() -> dict[str, omb.Availability]:
        warnings.warn("first line\nsecond line", omb.PresetWarning, stacklevel=1)
        return {}

    monkeypatch.setattr(presets, "availability", warns)
    before = warnings.showwarning
    assert cli("presets").err == "warning: first line second line\n"
    assert warnings.showwarning is before


def test_the_command_is_imported_without_any_engine(fresh: Callable[..., str]) -> None:
    code = "import onnx_multi_backend.cli; print(sorted({'onnxruntime', 'openvino'} & set(sys.modules)))"
    assert fresh(code) == "[]"


def test_a_closed_pipe_is_no_traceback() -> None:
    code = "from onnx_multi_backend.cli import main; main(['presets'])"
    command = f'"{sys.executable}" -c "{code}" | true'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize("columns", [50, 200])
def test_a_terminal_of_any_width_gets_everything_and_color_only_where_wanted(
    columns: int, saved: Callable[..., Path]
) -> None:
    path = saved(models.relu())
    for variables, colored in ({}, True), ({"NO_COLOR": "1"}, False):
        text = _on_terminal(["run", str(path), "--random", "--dim", "N=1"], columns, variables)
        letters = "".join(text.split())
        assert "float32" in letters
        assert "…" not in letters
        assert "[1,3]" in letters
        text = _on_terminal(["run", "missing.onnx"], columns, variables)
        assert ("\x1b[1;31m" in text) == colored


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x"])
def test_whatever_columns_says_something_is_printed(
    cli: Cli, saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = cli("run", saved(models.relu()), "--random")
    assert (done.code, done.err) == (0, "")
    assert "float32" in done.out


def _on_terminal(arguments: list[str], columns: int, variables: dict[str, str]) -> str:
    import pty

    code = f"from onnx_multi_backend.cli import main; main({arguments!r})"
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
    environment = {**kept, "TERM": "xterm-256color", "COLUMNS": str(columns), **variables}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    text = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux' way to say that the other side is closed
            break
        if not chunk:
            break
        text += chunk
    process.wait()
    os.close(ours)
    return text.decode()
