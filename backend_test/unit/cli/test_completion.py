# SPDX-License-Identifier: Apache-2.0
"""The shell completes commands, options and the names of presets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from backend_test.unit.cli.conftest import Cli

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with the command on the PATH, and a home of its own, which holds the script that completes."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin" / "onnx-multi-backend"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom onnx_multi_backend.cli import main\nmain()\n")
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    python = os.pathsep.join(filter(None, sys.path))
    made = {**os.environ, "PATH": path, "PYTHONPATH": python, "HOME": str(home), "SHELL": "/bin/bash"}
    (home / "completion.sh").write_text(bash("onnx-multi-backend --show-completion bash", made))
    return made


def bash(script: str, shell: dict[str, str]) -> str:
    """Run a script. A bash that ends with a command becomes that command, which then finds no shell above it."""
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\nexit"], env=shell, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


COMPLETE = """
source "$HOME/completion.sh"
COMP_WORDS=(onnx-multi-backend {words}); COMP_CWORD={place}
_onnx_multi_backend_completion onnx-multi-backend
printf '%s\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("conf", {"conformance"}),
        ("conformance --comp", {"--compare"}),
        ("conformance --preset Openv", {"Openvino"}),
        ("inspect --preset OrtCu", {"OrtCuda"}),
        ("conformance --fail-on r", {"regressions"}),
    ],
)
def test_bash_completes(shell: dict[str, str], words: str, expected: set[str]) -> None:
    found = bash(COMPLETE.format(words=words, place=len(words.split())), shell)
    assert set(found.split()) == expected


def test_help_says_how_completion_is_installed(cli: Cli) -> None:
    assert "--install-completion" in cli("--help").out
