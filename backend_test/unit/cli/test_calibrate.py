# SPDX-License-Identifier: Apache-2.0
"""The commands that make calibration tables and int8 models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.calibration import CalibrationTableTensorrt, speed

pytestmark = pytest.mark.usefixtures("ort_cpu", "short_turns")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model with a folder of samples, a file of them and a module beside it."""
    onnx.save(nets.convolutional(), tmp_path / "net.onnx")
    (tmp_path / "samples").mkdir()
    images = list(nets.images())
    for i, image in enumerate(images):
        np.save(tmp_path / "samples" / f"{i}.npy", image)
    np.savez(tmp_path / "all.npz", x=np.concatenate(images))
    (tmp_path / "net_data.py").write_text(
        "import numpy as np\n"
        "def batches():\n    yield from np.load('all.npz')['x'][:, None]\n"
        "def half(outputs, labels):\n    return 0.5\n"
        "nothing = []\n"
        "class Broken:\n    def __iter__(self):\n        raise ZeroDivisionError('mine')\n"
        "broken = Broken()\n"
    )
    return tmp_path / "net.onnx"


@pytest.mark.parametrize("data", ["samples", "all.npz", "net_data:batches"])
def test_a_table_is_made_of_data_in_every_form(cli: Cli, net: Path, data: str) -> None:
    done = cli("calibrate", net, "--data", data, "--out", "table.json")
    assert (done.code, done.err) == (0, "")
    assert "Saved table.json: the ranges of" in done.out
    table = CalibrationTableTensorrt.from_file_json(net.parent / "table.json")
    x = np.load("all.npz")["x"]
    assert table["x"] == (x.min(), x.max())


def test_an_int8_model_is_saved_with_its_report(cli: Cli, net: Path) -> None:
    out, page = net.parent / "int8.onnx", net.parent / "report.html"
    done = cli(
        "quantize",
        net,
        "--data",
        "samples",
        "--out",
        out,
        "--report",
        page,
        "--report",
        "report.json",
        "--even-if-slower",
        "--exclude",
        "conv1",
    )
    assert (done.code, done.err) == (0, ""), done
    assert "kept float as asked: conv1" in done.out
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert "conv1" in page.read_text()
    assert json.loads((net.parent / "report.json").read_text())["quantized"] is True
    x = next(nets.images())
    near = omb.OrtCpuBackend.run_model(net, x)[0] - omb.OrtCpuBackend.run_model(out, x)[0]
    assert np.abs(near).max() < 0.1


def test_what_stays_float_is_exit_code_1_and_saves_the_report_alone(cli: Cli, net: Path) -> None:
    words = ("--min-cosine", "1", "--report", "report.json", "--out", "int8.onnx")
    done = cli("quantize", net, "--data", "samples", *words)
    assert done.code == 1
    assert "stays float: no int8 model has a cosine of 1" in done.out
    assert "\nint8.onnx is not written\n" in done.out
    assert not (net.parent / "int8.onnx").exists()
    assert json.loads((net.parent / "report.json").read_text())["quantized"] is False


def test_what_is_not_faster_names_the_option_that_saves_it(
    cli: Cli, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "compare", lambda one, other: speed.Ratio(1.08, 1.05, 1.11, 1.08, 1.0))
    done = cli("quantize", net, "--data", "samples", "--out", "int8.onnx")
    assert done.code == 1
    assert "stays float: int8 is not faster on this machine: 1.08 times" in done.out
    assert "of the int8 model that was rejected: output " in done.out
    assert "int8.onnx is not written; --even-if-slower writes the int8 model all the same\n" in done.out
    assert not (net.parent / "int8.onnx").exists()


def test_a_metric_comes_from_a_module(cli: Cli, net: Path) -> None:
    words = ("--metric", "net_data:half", "--max-drop", "1", "--even-if-slower", "--out", "int8.onnx")
    done = cli("quantize", net, "--data", "samples", *words)
    assert done.code == 0
    assert "metric: 0.5 in float, 0.5 in int8" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--data", "nowhere", "--out", "t.json"), "there is no such folder or .npz file"),
        (("--data", "empty", "--out", "t.json"), "no .npy and no .npz file"),
        (("--data", "no_such_module:x", "--out", "t.json"), "there is no module 'no_such_module' here"),
        (("--data", "net_data:other", "--out", "t.json"), "'net_data' has no 'other'"),
        (("--data", "net_data:nothing", "--out", "t.json"), "data is empty"),
        (("--data", "net_data:broken", "--out", "t.json"), "--data net_data:broken raised ZeroDivisionError: mine."),
        (("--data", "samples", "--out", "t.txt"), "a .flatbuffers, .cache or .json file"),
        (("--data", "samples", "--out", "no/t.json"), "there is no folder 'no'"),
    ],
)
def test_wrong_use_is_an_error_and_leaves_no_file(cli: Cli, net: Path, words: tuple[str, ...], message: str) -> None:
    (net.parent / "empty").mkdir()
    before = sorted(net.parent.iterdir())
    assert message in cli("calibrate", net, *words).error()
    assert [p for p in sorted(net.parent.iterdir()) if p.name != "__pycache__"] == before


def test_the_float_model_is_not_replaced(cli: Cli, net: Path) -> None:
    before = net.read_bytes()
    words = ("--data", "samples", "--out", net.parent / "samples" / ".." / net.name)
    assert "is the float model itself" in cli("quantize", net, *words).error()
    assert net.read_bytes() == before


def test_a_wrong_suffix_is_told_before_anything_is_read(cli: Cli) -> None:
    assert (
        "'x.tflite' has to be a .onnx file" in cli("quantize", "no.onnx", "--data", "no", "--out", "x.tflite").error()
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_an_interrupt_leaves_no_half_written_file(tmp_path: Path) -> None:
    onnx.save(models.relu(), tmp_path / "net.onnx")
    (tmp_path / "endless.py").write_text(
        "import time\nimport numpy as np\n"
        "def batches():\n"
        "    while True:\n"
        "        open('started', 'w').close()\n        time.sleep(0.01)\n        yield np.ones((1, 3), np.float32)\n"
    )
    command = [sys.executable, "-m", "onnx_multi_backend", "quantize", "net.onnx", "--data", "endless:batches"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    run = subprocess.Popen([*command, "--out", "int8.onnx"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 130, told
    assert b"Traceback" not in told
    assert not (tmp_path / "int8.onnx").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
