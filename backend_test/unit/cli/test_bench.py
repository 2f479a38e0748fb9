# SPDX-License-Identifier: Apache-2.0
"""The commands ``bench`` and ``tune``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.tuning import read_report

pytestmark = pytest.mark.usefixtures("short_turns")


@pytest.fixture
def net(tmp_path: Path, ort_cpu: type[omb.Preset]) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(nets.convolutional(channels=4, layers=1), path)
    return path


SHORT = ("--preset", "OrtCpu")
SHAPE = ("--shape", "x=1,3,8,8")


def test_bench_prints_a_table_and_writes_all_forms(cli: Cli, net: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"out.{kind}" for kind in ("html", "json", "md")]
    reports = [word for file in files for word in ("--report", str(file))]
    done = cli("bench", str(net), *SHORT, *SHAPE, "--seconds", "0.5", *reports)
    assert done.code == 0, done.err
    assert "OrtCpu" in done.out and "a run, the median" in done.out
    assert "<svg" in files[0].read_text() and "| " in files[2].read_text()
    report = read_report(files[1].read_text(), "it")
    assert report.random and report.inputs == {"x": "float32 [1, 3, 8, 8]"}

    slower = json.loads(files[1].read_text())
    for row in slower["measurements"]:
        row["latency"] = [[seconds / 3 for seconds in times] for times in row["latency"]]
    old = tmp_path / "old.json"
    old.write_text(json.dumps(slower))
    again = cli("bench", str(net), *SHORT, *SHAPE, "--seconds", "0.5", "--compare", str(old))
    assert again.code == 1, again.out + again.err
    assert "slower" in again.out


@pytest.mark.parametrize("quantized", [False, True])
def test_beside_setups_the_presets_are_those_for_the_model(
    cli: Cli, net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quantized: bool
) -> None:
    """A preset for int8 is tried on a quantized model alone."""
    asked = []

    def usable(presets: None, *, model_is_quantized: bool) -> tuple[list[str], dict[str, str]]:
        asked.append(model_is_quantized)
        return [], {}

    monkeypatch.setattr("onnx_multi_backend.tuning.space.usable", usable)
    if quantized:
        one = [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.int8(0), "zero")]
        nodes = [
            models.node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
            models.node("DequantizeLinear", ["q", "one", "zero"], ["y"]),
        ]
        made = models.model(nodes, [models.tensor("x", [1, 3, 8, 8])], [models.tensor("y", [1, 3, 8, 8])])
        made.graph.initializer.extend(one)
        onnx.save(made, net)
    setup = tmp_path / "setup.json"
    setup.write_text('{"preset": "OrtCpu", "device": null, "options": {}}')
    done = cli("bench", str(net), *SHAPE, "--setup", str(setup), "--seconds", "0.1")
    assert done.code == 0, done.err
    assert asked == [quantized]


def test_tune_saves_a_setup_that_run_takes(cli: Cli, net: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 3, 8, 8), np.float32))
    setup = tmp_path / "setup.json"
    given = ("--input", str(tmp_path / "x.npy"))
    done = cli("tune", str(net), *SHORT, *given, "--budget", "6", "--save", str(setup))
    assert done.code == 0, done.err
    assert f"Saved {setup}" in done.out
    ran = cli("run", str(net), *given, "--setup", str(setup))
    assert ran.code == 0, ran.err
    assert "measured elsewhere" not in ran.err
    changed: dict[str, Any] = json.loads(setup.read_text())
    assert changed.keys() == {"preset", "device", "options", "measured_on"}  # the trials are in the report
    assert omb.Setup.from_json(changed).measured_on == changed["measured_on"]
    changed["measured_on"]["processor"] = "another"
    for content in (changed, {"setup": changed, "kind": "tune", "measurements": []}):  # what older versions wrote
        setup.write_text(json.dumps(content))
        assert "measured elsewhere" in cli("run", str(net), *given, "--setup", str(setup)).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--shape", "x"], "NAME=SIZES"),
        (["--shape", "x=1,a"], "NAME=SIZES"),
        (["--shape", "y=1"], "no such input"),
        (["--report", "out.txt"], "a .html, .json or .md file"),
        (["--report", "nowhere/out.html"], "there is no folder"),
        (["--compare", "nothing.json"], "nothing.json"),
        (["--input", "nothing.npy"], "there is no file"),
    ],
)
@pytest.mark.parametrize("command", ["bench", "tune"])
def test_what_is_wrong_is_said_in_a_line_before_anything_runs(
    cli: Cli, net: Path, command: str, options: list[str], words: str
) -> None:
    done = cli(command, str(net), *options)
    assert words in done.error()


def test_where_nothing_runs_the_answer_is_no(cli: Cli, tmp_path: Path, ort_cpu: type[omb.Preset]) -> None:
    unknown = models.one_node("Foo", [models.tensor("x", (1, 3))], [models.tensor("y", (1, 3))], domain="of.mine")
    unknown.opset_import.add(domain="of.mine", version=1)
    onnx.save(unknown, tmp_path / "unknown.onnx")
    done = cli("bench", "unknown.onnx", *SHORT, "--seconds", "0.1", "--report", "out.json")
    assert (done.code, done.err) == (1, "")
    assert "None of 1 configurations gives a usable result" in done.out
    assert (tmp_path / "out.json").exists()


def test_presets_are_measured_with_options_and_inputs_of_a_seed(cli: Cli, net: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    options = ("--option", "intra_op_num_threads=1", "--device", "CPU", "--seed", "7", "--seconds", "0.2")
    done = cli("bench", str(net), *SHORT, *SHAPE, *options, "--report", str(file))
    assert done.code == 0, done.err
    (row,) = read_report(file.read_text(), "it").measurements
    assert (row.setup.device, row.setup.options) == ("CPU", {"intra_op_num_threads": 1})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*SHORT, "--option", "intra_op_num_threads=1", "--threads", "2"], "--threads is for presets as they are"),
        (["--option", "intra_op_num_threads=1"], "--option goes with --preset"),
        ([*SHORT, "--option", "no_such=1"], "no_such"),
        ([*SHORT, "--seed", "-1"], "--seed"),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli: Cli, net: Path, options: list[str], words: str) -> None:
    assert words in cli("bench", str(net), *options).err


def test_a_report_of_something_else_is_refused(cli: Cli, net: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"backends": []}')
    done = cli("bench", str(net), "--compare", str(other))
    assert "is not a report that `bench` or `tune` wrote" in done.error()
