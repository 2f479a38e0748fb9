# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend inspect``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.host import cpus

Save = Callable[..., Path]


@pytest.fixture
def newest(limited: Callable[..., None]) -> onnx.ModelProto:
    """A model that ONNX Runtime takes only when its IR version is lowered."""
    limited()
    model = models.one_node("Relu", [models.tensor("x")], [models.tensor("y")], ir_version=onnx.IR_VERSION)
    model.producer_name, model.producer_version = "hand", "1.0"
    return model


def test_the_facts_of_a_model(cli: Cli, saved: Save) -> None:
    model = models.linear()
    model.graph.input.append(models.tensor("b", [2]))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    path = saved(model)
    done = cli("inspect", path, "--preset", "OrtCpu")
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == str(path)
    assert f"size {path.stat().st_size} bytes" in lines
    assert f"IR version {models.IR_VERSION}" in lines
    assert f"opsets ai.onnx {models.OPSET}, ai.onnx.ml 3" in lines
    assert "operators MatMul 1, Add 1" in lines
    assert lines[lines.index("Inputs") + 1] == "x tensor(float) [N, 3]"
    assert lines[lines.index("Inputs with a default") + 1] == "b tensor(float) [2]"
    assert lines[lines.index("Outputs") + 1] == "y tensor(float) [N, 2]"


def test_many_inputs_with_a_default_are_cut(cli: Cli, saved: Save) -> None:
    """Before IR version 4 every weight is one."""
    model = models.linear()
    for i in range(12):
        model.graph.initializer.append(numpy_helper.from_array(np.float32([i]), f"w{i}"))
        model.graph.input.append(models.tensor(f"w{i}", [1]))
    path = saved(model)
    lines = [" ".join(line.split()) for line in cli("inspect", path, "--preset", "OrtCpu").out.splitlines()]
    first = lines.index("Inputs with a default") + 1
    assert lines[first + 9 : first + 11] == ["w9 tensor(float) [1]", "and 2 more, which --json lists"]
    listed = json.loads(cli("inspect", path, "--preset", "OrtCpu", "--json").out)
    assert "w11" in json.dumps(listed["model"])


def test_the_presets_say_how_they_run_it(cli: Cli, saved: Save, newest: onnx.ModelProto) -> None:
    done = cli("inspect", saved(newest), "--preset", "OrtCpu")
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if line.startswith("OrtCpu "))
    assert row.split() == ["OrtCpu", "yes", "1", "on", "CPUExecutionProvider", "1"]
    assert "OrtCpu adapts it\n  ir_version: " in done.out


def test_what_holds_for_several_presets_is_said_once(
    cli: Cli, saved: Save, newest: onnx.ModelProto, ort_cpu: object
) -> None:
    done = cli("inspect", saved(newest), "--preset", "OrtCpu", "--preset", "Ort")
    assert "OrtCpu, Ort (CPUExecutionProvider) adapt it\n  ir_version: " in done.out
    assert done.out.count("  ir_version: ") == 1


def test_a_preset_that_cannot_run_it_says_why(cli: Cli, saved: Save, openvino: object) -> None:
    strings = [models.tensor(name, ["N"], TensorProto.STRING) for name in "aby"]
    path = saved(models.one_node("StringConcat", strings[:2], strings[2:]))
    done = cli("inspect", path, "--preset", "Openvino")
    assert done.code == 1  # none of those asked runs it
    assert "Openvino does not run it\n  StringConcat 'the_StringConcat': " in done.out
    done = cli("inspect", path, "--preset", "Openvino", "--preset", "OrtCpu")
    assert done.code == 0


def test_a_model_that_is_too_new_is_one_that_no_preset_runs(cli: Cli, saved: Save, ort_cpu: object) -> None:
    newer = {"ir_version": onnx.IR_VERSION + 1}, {"opset": onnx.defs.onnx_opset_version() + 1}
    for version, what in zip(newer, ("IR version", "opset"), strict=True):
        path = saved(models.one_node("Relu", [models.tensor("x")], [models.tensor("y")], **version))
        done = cli("inspect", path, "--preset", "OrtCpu")
        assert done.code == 1
        assert "OrtCpu does not run it\n" in done.out
        assert f" has {what} " in done.out
        assert "Upgrade onnx, or export the model with an older" in done.out


def test_what_would_be_rewritten_is_told_with_its_node_and_cause(cli: Cli, saved: Save, openvino: object) -> None:
    nodes = [models.node("CumProd", ["x", "axis"], ["p"]), models.node("SpaceToDepth", ["p"], ["y"], blocksize=2)]
    made = models.model(
        nodes,
        [models.tensor("x", [1, 4, 2, 2])],
        [models.tensor("y", [1, 16, 1, 1])],
        opsets={"": onnx.defs.onnx_opset_version()},
    )
    made.graph.initializer.append(helper.make_tensor("axis", TensorProto.INT64, [], [1]))
    done = cli("inspect", saved(made), "--preset", "Openvino")
    assert done.code == 0
    told = done.out.partition("Openvino adapts it\n")[2]
    assert told.strip().startswith("cum_prod at CumProd 'the_CumProd': written with ")
    assert "No conversion rule found for operations: CumProd" in told
    assert "SpaceToDepth" not in told  # what the engine has stays as it is


def test_what_would_come_out_wrong_is_told_as_a_refusal(cli: Cli, saved: Save, openvino: object) -> None:
    given, options = [models.tensor("x", [2, 4, 2])], {"onesided": 1, "inverse": 1}
    made = models.one_node("DFT", given, [models.tensor("y", None)], opset=17, **options)
    done = cli("inspect", saved(made), "--preset", "Openvino")
    assert done.code == 1
    assert "Openvino does not run it\n  DFT 'the_DFT': a one-sided transform keeps" in done.out


def test_the_instruction_set_is_told_where_openvino_is_asked_for(cli: Cli, saved: Save, openvino: object) -> None:
    model = saved(models.relu())
    asked = cli("inspect", model, "--preset", "Openvino").out
    assert "OpenVINO on this CPU\n" in asked
    told = json.loads(cli("inspect", model, "--preset", "Openvino", "--json").out)["openvino_cpu"]
    assert told["instruction_set"] in asked
    assert "OpenVINO on this CPU" not in cli("inspect", model).out


def test_the_number_of_threads_is_told_where_a_preset_is_named(cli: Cli, saved: Save, ort_cpu: object) -> None:
    model = saved(models.relu())
    here = cpus.usable()
    assert here.why in cli("inspect", model, "--preset", "OrtCpu").out.partition("\nThreads, ")[2]
    assert json.loads(cli("inspect", model, "--preset", "OrtCpu", "--json").out)["threads"]["why"] == here.why
    assert "Threads, " not in cli("inspect", model).out


def test_nodes_elsewhere_are_listed(cli: Cli, saved: Save, openvino_ep: object) -> None:
    strings = [models.tensor(name, ["N"], TensorProto.STRING) for name in "aby"]
    nodes = [models.node("StringConcat", ["a", "b"], ["y"]), models.node("Relu", ["x"], ["z"])]
    path = saved(models.model(nodes, [*strings[:2], models.tensor("x")], [strings[2], models.tensor("z")]))
    done = cli("inspect", path, "--preset", "OrtOpenvino")
    assert "OrtOpenvino runs 1 of 2 nodes elsewhere\n  CPUExecutionProvider: StringConcat 'the_Str" in done.out
    assert cli("inspect", path, "--preset", "OrtOpenvino", "--fallback", "none").code == 1


def test_json_holds_the_same(cli: Cli, saved: Save, newest: onnx.ModelProto) -> None:
    content = json.loads(cli("inspect", saved(newest), "--preset", "OrtCpu", "--json").out)
    facts = content["model"]
    assert facts["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["N", 3], "has_default": False}]
    assert (facts["producer"], facts["opsets"], facts["operators"]) == ("hand 1.0", {"ai.onnx": 20}, {"Relu": 1})
    preset = content["presets"]["OrtCpu"]
    assert preset["runs"]
    assert preset["nodes"] == {"CPUExecutionProvider": 1}
    assert [a["pass"] for a in preset["adaptations"]] == ["ir_version"]
    assert (preset["elsewhere"], preset["reasons"]) == ([], [])


def test_every_usable_preset_is_asked_unless_some_are_named(cli: Cli, saved: Save) -> None:
    content = json.loads(cli("inspect", saved(models.relu()), "--json").out)
    usable = {name for name, state in omb.availability().items() if state.usable} - {"OrtTensorrtInt8"}
    assert set(content["presets"]) == usable
    assert all(answer["runs"] for answer in content["presets"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "Nope"], "There is no preset 'Nope'. Presets: Ort, OrtCpu,"),
        (["--preset", "OrtCpu", "--device", "QPU"], "OrtCpu has no device 'QPU'."),
        (["--preset", "OrtCpu", "--option", "threads=2"], "OrtCpu has no option 'threads'. Its options are"),
        (["--preset", "OrtCpu", "--option", "intra_op_num_threads=0"], "intra_op_num_threads is at least 1"),
        (["--preset", "OrtCpu", "--option", "adapt"], "--option is written NAME=VALUE"),
        (["--preset", "OrtTensorrtInt8"], "OrtTensorrtInt8 needs --option calibration_table=VALUE: "),
        (["--option", "adapt=false"], "--option goes with --preset"),
        (["--device", "QPU"], "No preset knows a device 'QPU'."),
    ],
)
def test_wrong_use_is_an_error(cli: Cli, saved: Save, arguments: list[str], message: str) -> None:
    done = cli("inspect", saved(models.relu()), *arguments)
    assert done.error().startswith(message)
    assert not done.out


def test_an_option_of_onnx_runtimes_session_is_told_its_place(cli: Cli, saved: Save) -> None:
    done = cli("inspect", saved(models.relu()), "--preset", "OrtCpu", "--option", "graph_optimization_level=0")
    assert done.error().endswith("ONNX Runtime's own options go into session_options.")


@pytest.mark.parametrize("arguments", [["--preset", "OrtCuda"], ["--device", "CUDA:0"]])
def test_a_device_that_is_not_there_is_an_error_with_its_cure(
    cli: Cli, saved: Save, no_gpu: None, arguments: list[str]
) -> None:
    assert cli("inspect", saved(models.relu()), *arguments).error().startswith("OrtCuda cannot run on CUDA:0: ")


def test_a_broken_model_is_an_error(cli: Cli, saved: Save, tmp_path: Path) -> None:
    assert cli("inspect", tmp_path).error() == f"'{tmp_path}' is a directory. Pass the .onnx file inside it."
    (tmp_path / "empty.onnx").touch()
    assert "is empty: 0 bytes" in cli("inspect", tmp_path / "empty.onnx").error()
    unknown = models.one_node("Frobnicate", [models.tensor("x")], [models.tensor("y")])
    done = cli("inspect", saved(unknown))
    assert "Frobnicate" in done.error()
    assert "Frobnicate 1" in done.out  # what the file says is still told


@pytest.fixture
def lacking() -> onnx.ModelProto:
    """An operator that no engine has, and others that differ in an attribute."""
    nodes = [models.node("Frob", ["v0"], ["v1"], domain="com.example", name="frob")]
    nodes += [models.node("LeakyRelu", ["v1"], [f"y{k}"], alpha=k / 100, name=f"l{k}") for k in range(30)]
    outputs = [models.tensor(f"y{k}") for k in range(30)]
    value = models.tensor("v1")
    made = models.model(nodes, [models.tensor("v0")], outputs, opsets={"com.example": 1})
    made.graph.value_info.append(value)
    return made


def test_how_far_it_is_is_told(
    cli: Cli, saved: Save, lacking: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnx_multi_backend.cli.console.PAUSE", 0.0)
    done = cli("inspect", saved(lacking), "--preset", "OrtCpu")
    assert done.code == 1
    assert "asking OrtCpu; Ctrl-C stops it: 30 nodes asked about one by one; it lacks Frob" in done.err
    assert "one by one" not in done.out


def test_an_interrupt_shows_what_is_known(
    cli: Cli, saved: Save, lacking: onnx.ModelProto, openvino: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Patience.look
    looked: list[Patience] = []

    def interrupted(patience: Patience) -> None:
        look(patience)
        looked.append(patience)
        if len(looked) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(Patience, "look", interrupted)
    path = saved(lacking)
    done = cli("inspect", path, "--preset", "OrtCpu", "--preset", "Openvino")
    assert done.code == 130
    assert done.err.endswith("error: interrupted; what is shown was known by then.\n")
    rows = [line.split()[:2] for line in done.out.splitlines() if line.startswith("O")]
    assert ["OrtCpu", "unknown"] in rows
    assert ["Openvino", "unknown"] in rows
    assert "OrtCpu was interrupted\n  " in done.out
    assert "asked about one by one; it lacks Frob" in done.out
    assert "\nOpenvino was not asked\n" in done.out
    looked.clear()
    told = json.loads(cli("inspect", path, "--preset", "OrtCpu", "--json").out)
    assert told["presets"]["OrtCpu"]["runs"] is None
