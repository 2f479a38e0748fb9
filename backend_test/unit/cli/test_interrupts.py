# SPDX-License-Identifier: Apache-2.0
"""A terminal that is closed, and Ctrl-C as early as it can come."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnx_multi_backend.conformance import Report

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these signals nor terminals")

#: Answers to Add, and hangs in Neg.
CASES = ("--backend", "examples.bad_backend.BadBackend", "-k", "test_add_cpu or test_neg_cpu", "--jobs", "1")


def test_a_terminal_that_is_closed_costs_nothing_that_is_known(tmp_path: Path) -> None:
    import fcntl
    import termios

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    master, slave = os.openpty()
    command = [sys.executable, "-m", "backend_test.command", "conformance", *CASES, "--out", str(tmp_path / "out")]
    run = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=take_terminal
    )
    os.close(slave)
    try:
        _read_until(master, b"1 pass")
        os.close(master)  # the kernel sends SIGHUP, and what is written from here on is an error
        run.wait(60)
    finally:
        run.kill()
    report = Report.read(tmp_path / "out" / "report.json")
    assert report.interrupted
    assert [case.name for case in report.cases] == ["test_add_cpu"]
    assert run.returncode == 130


def _read_until(master: int, words: bytes) -> None:
    seen, deadline = b"", time.monotonic() + 120
    while words not in seen and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # the other side is gone
            seen += os.read(master, 65536)
    assert words in seen


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    script = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from onnx_multi_backend.conformance.interrupts import one_interrupt\n"
        "with one_interrupt(): signal.raise_signal(signal.SIGHUP); print('alive')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "alive\n"


@pytest.mark.parametrize("module", ["onnx", "onnx_multi_backend.cli.conformance"])
@pytest.mark.parametrize("command", ["-m", "script"])
def test_an_interrupt_while_python_imports_is_no_traceback(tmp_path: Path, command: str, module: str) -> None:
    """The signal comes when the import of a module begins."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r} and not getattr(self, 'done', False):\n"
        "            self.done = True\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    script = tmp_path / "onnx-multi-backend"
    script.write_text("import sys\nfrom onnx_multi_backend.cli import main\nsys.exit(main())\n")
    started = ["-m", "onnx_multi_backend"] if command == "-m" else [str(script)]
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, *started, "presets"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.returncode in (130, -signal.SIGINT)


def test_a_program_that_uses_the_package_keeps_its_own_interrupt() -> None:
    script = "import onnx_multi_backend, signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "True\n"
