# SPDX-License-Identifier: Apache-2.0
"""The workflow to copy, from docs/conformance.md, in a repository of somebody else's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import onnx_multi_backend
from onnx_multi_backend.conformance import Report

ROOT = Path(onnx_multi_backend.__file__).parents[1]
TEXT = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8").partition("## A workflow to copy")[2]
BACKEND = """
from examples.toy_backend import ToyBackend
prepare, supports_device = ToyBackend.prepare, ToyBackend.supports_device
"""


def test_its_commands_run(tmp_path: Path) -> None:
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "backend.py").write_text(BACKEND)
    (draft,) = re.findall(r"^```\n(onnx-multi-backend .*)\n```$", TEXT, re.MULTILINE)
    (folded,) = re.findall(r"- run: >\n((?: {10}.*\n)+)", TEXT)
    for command in (draft, " ".join(folded.split())):
        program, *words = shlex.split(command)
        assert program == "onnx-multi-backend"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "backend_test.command",
                *words,
                "-k",
                "test_abs or test_sub_cpu",
            ],  # enough to see it run
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    (summary,) = re.findall(r"cat (\S+) >>", TEXT)
    assert "my_package.backend" in (tmp_path / summary).read_text(encoding="utf-8")
    (backend,) = Report.read(tmp_path / "report" / "report.json").backends.values()
    assert backend.expectations == "conformance.toml"


def test_it_installs_the_wheel_that_is_built() -> None:
    (pattern,) = re.findall(r"pip install \. wheels/(\S+)", TEXT)
    assert fnmatch(f"onnx_multi_backend-{onnx_multi_backend.__version__}-py3-none-any.whl", pattern)
