# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest

from onnx_multi_backend.cli import main


class Done(NamedTuple):
    """What the command left behind."""

    code: int
    out: str
    err: str

    def error(self) -> str:
        """The one line of an error; whatever it was, nothing else was printed to stderr."""
        assert self.code == 2, self
        assert self.err.startswith("error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("error: ").rstrip("\n")


Cli = Callable[..., Done]


@pytest.fixture(autouse=True)
def hangups_end_processes() -> Iterator[None]:
    """Under nohup the tests, and every process that they start, would ignore SIGHUP."""
    hangup = getattr(signal, "SIGHUP", None)
    before = signal.signal(hangup, signal.SIG_DFL) if hangup is not None else None
    yield
    if hangup is not None:
        signal.signal(hangup, before)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(a) for a in arguments])
        captured = capfd.readouterr()
        assert isinstance(exit_.value.code, int)
        return Done(exit_.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[onnx.ModelProto], Path]:
    """Saves a model."""

    def save(model: onnx.ModelProto, name: str = "model.onnx") -> Path:
        path = tmp_path / name
        onnx.save(model, path)
        return path

    return save
