# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend run``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.models.tensors import element_name

Save = Callable[..., Path]

A = np.float32([[1, 2, 3]])
B = np.float32([[0.5, 0.5, 0.5]])


@pytest.fixture
def subtract(saved: Save) -> Path:
    return saved(models.subtract())


@pytest.fixture
def relu(saved: Save) -> Path:
    return saved(models.relu(["N", 100]))


def identity(elem_type: int) -> onnx.ModelProto:
    """An Identity in the newest opset, which has every type."""
    opset, shape = onnx.defs.onnx_opset_version(), ["N", 5]
    x, y = (models.tensor(name, shape, elem_type) for name in "xy")
    return models.one_node("Identity", [x], [y], opset=opset, ir_version=onnx.IR_VERSION)


def _values(out: str) -> dict[str, str]:
    rows = [line for line in out.splitlines() if not line.startswith(("Output ", "Saved ", "Ort"))]
    return {row.split()[0]: row.partition("] ")[2].strip() for row in rows}


def test_inputs_by_name_from_npy_and_pb(cli: Cli, subtract: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", A)
    (tmp_path / "b.pb").write_bytes(numpy_helper.from_array(B).SerializeToString())
    done = cli("run", subtract, "--input", "a=a.npy", "--input", "b=b.pb")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "OrtCpu on CPU"
    assert done.out.splitlines()[2].split(maxsplit=2)[:2] == ["y", "float32"]
    assert _values(done.out) == {"y": "[[0.5, 1.5, 2.5]]"}


def test_inputs_from_one_npz(cli: Cli, subtract: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", b=B, a=A)
    assert _values(cli("run", subtract, "--input", "both.npz").out) == {"y": "[[0.5, 1.5, 2.5]]"}
    np.savez(tmp_path / "one.npz", B)
    done = cli("run", subtract, "--input", "b=one.npz", "--input", "a=one.npz")
    assert _values(done.out) == {"y": "[[0., 0., 0.]]"}


@pytest.mark.parametrize("file", ["x.npy", "x.npz", "x.pb", "with=sign.npy"])
def test_the_name_may_be_left_out_where_there_is_one_input(cli: Cli, saved: Save, tmp_path: Path, file: str) -> None:
    np.save(tmp_path / "x.npy", A)
    np.save(tmp_path / "with=sign.npy", A)
    np.savez(tmp_path / "x.npz", A)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(A).SerializeToString())
    assert _values(cli("run", saved(models.relu()), "--input", file).out) == {"y": "[[1., 2., 3.]]"}


def test_sequences_and_optionals_come_from_pb_files(cli: Cli, saved: Save, tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", models.FLOAT, None)
    path = saved(models.one_node("SequenceLength", [sequence], [models.tensor("n", [], models.INT64)]))
    (tmp_path / "s.pb").write_bytes(numpy_helper.from_list([A, B]).SerializeToString())
    assert "n       int64  []     2\n" in cli("run", path, "--input", "s.pb").out
    optional = onnx.ValueInfoProto(name="o", type=helper.make_optional_type_proto(models.tensor("", [1, 3]).type))
    path = saved(models.one_node("OptionalHasElement", [optional], [models.tensor("y", [], TensorProto.BOOL)]))
    (tmp_path / "o.pb").write_bytes(numpy_helper.from_optional(A).SerializeToString())
    assert "True\n" in cli("run", path, "--input", "o=o.pb").out


def test_random_inputs_are_the_same_for_the_same_seed(cli: Cli, relu: Path) -> None:
    def saved_output(*arguments: object) -> np.ndarray[Any, Any]:
        assert cli("run", relu, "--random", "--save", "out.npz", *arguments).code == 0
        with np.load("out.npz") as content:
            return np.array(content["y"])

    first, again, other = saved_output(), saved_output("--seed", 0), saved_output("--seed", 1)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.shape == (1, 100)
    assert saved_output("--dim", "N=4").shape == (4, 100)


def test_the_shape_of_what_is_drawn_is_given_and_shown(cli: Cli, relu: Path) -> None:
    done = cli("run", relu, "--random", "--shape", "x=4,100", "--save", "out.npz")
    assert "Drawn at random: x: [4, 100]\n" in done.out
    assert np.load("out.npz")["y"].shape == (4, 100)


def test_random_fills_only_what_no_file_gives(cli: Cli, subtract: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.full((1, 3), 7, np.float32))
    done = cli("run", subtract, "--random", "--input", "b=b.npy", "--save", "out.npz")
    assert done.code == 0
    assert (np.load("out.npz")["y"] < -5).all()


def test_many_values_are_summed_up_and_odd_ones_counted(cli: Cli, relu: Path, tmp_path: Path) -> None:
    x = np.arange(100, dtype=np.float32)[None]
    np.save(tmp_path / "x.npy", x)
    assert _values(cli("run", relu, "--input", "x.npy").out) == {"y": "min 0, mean 49.5, max 99"}
    x[0, 99], x[0, 98] = np.inf, np.nan
    np.save(tmp_path / "x.npy", x)
    values = _values(cli("run", relu, "--input", "x.npy").out)["y"]
    assert values == "min 0, mean 48.5, max 97, 1 nan, 1 inf"


STORED = {
    TensorProto.BFLOAT16: "float32",
    TensorProto.FLOAT8E4M3FN: "float32",
    TensorProto.FLOAT8E5M2: "float32",
    TensorProto.INT4: "int8",
    TensorProto.UINT2: "uint8",
    TensorProto.FLOAT16: "",
    TensorProto.DOUBLE: "",
    TensorProto.INT8: "",
    TensorProto.UINT64: "",
    TensorProto.BOOL: "",
    TensorProto.STRING: "",
}


@pytest.mark.parametrize("elem_type", STORED, ids=element_name)
def test_what_is_saved_can_be_fed_again(cli: Cli, saved: Save, elem_type: int) -> None:
    path, wider = saved(identity(elem_type)), STORED[elem_type]
    done = cli("run", path, "--random", "--dim", "N=3", "--save", "first.npz")
    assert done.code == 0
    if wider:
        assert f"which .npz cannot hold; saved as {wider}, exactly" in done.err
    with np.load("first.npz", allow_pickle=False) as content:
        np.savez("again.npz", x=content["y"])
    assert cli("run", path, "--input", "again.npz", "--save", "second.npz").code == 0
    first, second = np.load("first.npz")["y"], np.load("second.npz")["y"]
    assert first.shape == (3, 5)
    assert first.dtype == second.dtype
    assert np.array_equal(first, second)


def test_a_value_that_the_input_cannot_hold_is_refused(cli: Cli, saved: Save, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 5), 1.001, np.float32))
    error = cli("run", saved(identity(TensorProto.BFLOAT16)), "--input", "x.npy").error()
    assert "the input is bfloat16, and not every float32 value of the file is one" in error


def test_the_bytes_of_a_bfloat16_array_are_understood(cli: Cli, saved: Save, tmp_path: Path) -> None:
    import ml_dtypes

    np.save(tmp_path / "x.npy", np.ones((1, 5), ml_dtypes.bfloat16))
    assert "[[1., 1., 1., 1., 1.]]" in cli("run", saved(identity(TensorProto.BFLOAT16)), "--input", "x.npy").out


def test_a_sequence_is_saved_by_element(cli: Cli, saved: Save) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", models.FLOAT, None)
    made = models.node("SequenceConstruct", ["x", "x"], ["s"])
    done = cli("run", saved(models.model([made], [models.tensor("x")], [sequence])), "--random", "--save", "out.npz")
    assert done.code == 0
    assert set(np.load("out.npz").files) == {"s[0]", "s[1]"}


def test_outputs_of_any_name_are_saved(cli: Cli, saved: Save) -> None:
    x, y = models.tensor("x"), models.tensor("file")
    assert cli("run", saved(models.one_node("Relu", [x], [y])), "--random", "--save", "out.npz").code == 0
    assert np.load("out.npz").files == ["file"]


def test_nothing_half_written_is_left(cli: Cli, relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"the old one")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    error = cli("run", relu, "--random", "--save", "out.npz").error()
    assert error == "--save out.npz: it cannot be written: No space left on device."
    assert target.read_bytes() == b"the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "out.npz"]


def test_a_fallback_is_a_one_line_warning(cli: Cli, saved: Save, openvino_ep: object) -> None:
    strings = [models.tensor(name, ["N"], TensorProto.STRING) for name in "aby"]
    nodes = [models.node("StringConcat", ["a", "b"], ["y"]), models.node("Relu", ["x"], ["z"])]
    path = saved(models.model(nodes, [*strings[:2], models.tensor("x")], [strings[2], models.tensor("z")]))
    done = cli("run", path, "--random", "--device", "ORT_OPENVINO")
    assert done.code == 0
    assert done.err.startswith("warning: OrtOpenvino: 1 of 2 nodes run on CPUExecutionProvider")
    assert done.err.count("\n") == 1
    refused = cli("run", path, "--random", "--preset", "OrtOpenvino", "--fallback", "none").error()
    assert "--fallback none refuses that" in refused


def test_the_preset_and_its_options_can_be_chosen(cli: Cli, relu: Path) -> None:
    done = cli("run", relu, "--random", "--preset", "OrtCpu", "--option", "intra_op_num_threads=1")
    assert done.code == 0
    done = cli("run", relu, "--random", "--preset", "Ort")  # which needs a provider: the CPU's
    assert done.out.splitlines()[0].startswith("Ort")
    done = cli("run", relu, "--random", "--preset", "Ort", "--option", "provider_name=Nope")
    assert "Nope" in done.error()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give the inputs with --input NAME=FILE, or --random. a: tensor(float)[N, 3]; b: "),
        (["--input", "a=a.npy"], "input 'b' missing. Its inputs are"),
        (["--input", "a.npy"], "--input a.npy: which input? Write --input NAME=a.npy. The model's inputs: a: "),
        (["--input", "a=a.npy", "--input", "a=a.npy"], "--input a=a.npy: the input 'a' is given twice."),
        (["--input", "c=a.npy", "--random"], "has no input 'c'"),
        (["--input", "a=none.npy"], "--input a=none.npy: there is no file 'none.npy'."),
        (["--input", "a=model.onnx"], "'model.onnx' is not a .npy, .npz or .pb file."),
        (["--input", "a=folder.npy"], "'folder.npy' is not a .npy, .npz or .pb file."),
        (["--input", "a=two.npz"], "it holds 2 arrays (p, q), and one input takes one."),
        (["--input", "a=objects.npy"], "holds Python objects, which are never unpickled"),
        (["--input", "objects.npz"], "holds Python objects, which are never unpickled"),
        (["--input", "a=junk.npy"], "'junk.npy' is not a .npy file of plain arrays: it is damaged"),
        (["--input", "junk.npz"], "'junk.npz' is not a .npz file of plain arrays: "),
        (["--input", "a=empty.npy"], "'empty.npy' is not a .npy file of plain arrays: "),
        (["--input", "a=junk.pb"], "'junk.pb' is not an ONNX TensorProto, or is damaged"),
        (["--input", "a=elsewhere.pb"], "'elsewhere.pb' points to data in another file, which is not read."),
        (["--input", "a=ints.npy", "--random"], "dtype int64 given, the model wants float32"),
        (["--random", "--dim", "M=2"], "--dim M=2: no input has a dimension 'M'. The symbolic dimensions: N."),
        (["--random", "--dim", "N=x"], "--dim is written NAME=SIZE or INPUT:AXIS=SIZE"),
        (["--random", "--dim", "a:1=2"], "By input and axis: a:0, b:0."),
        (["--dim", "N=2"], "--dim goes with --random."),
        (["--shape", "a=2,3"], "--shape goes with --random."),
        (["--random", "--shape", "c=2,3"], "The shape of 'c': there is no such input; there are a, b."),
        (["--random", "--shape", "a=2,3,4"], "The shape (2, 3, 4) does not fit the input a: tensor(float)[N, 3]."),
        (
            ["--random", "--shape", "a=2,4"],
            "The shape (2, 4) does not fit the input a: tensor(float)[N, 3]: dimension 1 is 3.",
        ),
        (["--random", "--seed", "-1"], "Invalid value for '--seed'"),
        (["--random", "--save", "out.txt"], "--save out.txt: the file's name ends with .npz."),
        (["--random", "--save", "no/out.npz"], "--save no/out.npz: there is no folder 'no'."),
        (["--random", "--save", "folder.npz"], "--save folder.npz: it is a directory."),
        (["--random", "--preset", "Nope"], "There is no preset 'Nope'."),
        (["--random", "--preset", "OrtCpu", "--device", "CUDA"], "OrtCpu has no device 'CUDA'."),
        (["--random", "--preset", "OrtCpu", "--option", "speed=9"], "OrtCpu has no option 'speed'."),
        (["--random", "--preset", "OrtTensorrtInt8"], "OrtTensorrtInt8 needs --option calibration_table=VALUE"),
        (["--random", "--device", "QPU"], "There is no device 'QPU'."),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    cli: Cli, subtract: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    np.save(tmp_path / "a.npy", A)
    np.save(tmp_path / "ints.npy", A.astype(np.int64))
    np.savez(tmp_path / "two.npz", p=A, q=B)
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", a=np.array([{}]))
    for name in ("junk.npy", "junk.npz", "junk.pb"):
        (tmp_path / name).write_bytes(b"\xff\xff\xff\xff no array")
    (tmp_path / "empty.npy").touch()
    for name in ("folder.npy", "folder.npz"):
        (tmp_path / name).mkdir()
    elsewhere = TensorProto(data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    elsewhere.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "elsewhere.pb").write_bytes(elsewhere.SerializeToString())
    done = cli("run", subtract, *arguments)
    assert message in done.error()
    assert done.out == ""


def test_a_missing_model_is_an_error(cli: Cli, tmp_path: Path) -> None:
    error = cli("run", "none.onnx", "--random").error()
    assert error == f"There is no file '{tmp_path / 'none.onnx'}'. Check the path of the model."


def test_a_device_that_is_not_there_is_an_error_with_its_cure(cli: Cli, relu: Path, no_gpu: None) -> None:
    error = cli("run", relu, "--random", "--device", "CUDA:0").error()
    assert error.startswith("OrtCuda cannot run on CUDA:0: ")
    assert "Install" in error


def test_random_inputs_are_what_models_take(cli: Cli, saved: Save) -> None:
    """Token ids fit the table, masks are ones, lengths fit, and an image is one."""
    made = models.model(
        [
            models.node("Gather", ["table", "ids"], ["words"]),
            models.node("Cast", ["attention_mask"], ["kept"], to=models.FLOAT),
            models.node("ReduceSum", ["words"], ["s"]),
            models.node("ReduceMin", ["kept"], ["k"], keepdims=0),
            models.node("Shape", ["image"], ["size"]),
            models.node("Identity", ["seq_lengths"], ["n"]),
            models.node("Identity", ["past_mask"], ["p"], name="copy"),
        ],
        [
            models.tensor("ids", ["batch", "sequence"], TensorProto.INT64),
            models.tensor("attention_mask", ["batch", "sequence"], TensorProto.INT64),
            models.tensor("seq_lengths", ["batch"], TensorProto.INT64),
            models.tensor("image", [None, 3, None, None]),
            models.tensor("past_mask", ["batch", "sequence + 1"], TensorProto.INT64),
        ],
        [models.tensor(name, None, kind) for name, kind in (("s", 1), ("k", 1), ("size", 7), ("n", 7), ("p", 7))],
        initializers={"table": np.float32([[1], [2]])},
        opsets={"": 13},
    )
    path = saved(made)
    done = cli("run", path, "--random", "--save", "out.npz", "--dim", "sequence=5", "--dim", "image:2=64")
    assert done.code == 0, done.err
    with np.load("out.npz") as results:
        assert results["k"] == 1
        assert results["size"].tolist() == [1, 3, 64, 224]
        assert results["n"].tolist() == [224]
        assert results["p"].shape == (1, 6)


def test_what_was_drawn_is_told_where_it_does_not_fit(cli: Cli, saved: Save) -> None:
    made = models.one_node(
        "Add", [models.tensor("a", ["x", 3]), models.tensor("b", [2, "y"])], [models.tensor("c", None)]
    )
    error = cli("run", saved(made), "--random").error()
    assert (
        ". The inputs were drawn at random (a: [1, 3], b: [2, 16]); give what the model needs with --input NAME=FILE, --shape or --dim."
        in error
    )
    assert cli("run", saved(made), "--random", "--dim", "y=3").code == 0


@pytest.mark.parametrize("name", ["device", "model", "preset", "setup"])
@pytest.mark.parametrize("preset", [(), ("--preset", "OrtCpu")], ids=["no preset", "preset"])
def test_an_argument_of_the_command_is_no_option(cli: Cli, relu: Path, name: str, preset: tuple[str, ...]) -> None:
    done = cli("run", relu, "--random", *preset, "--option", f"{name}=CPU")
    assert f"--option {name}: that is no option of a preset" in done.error()


@pytest.mark.parametrize("sizes", [("--dim", "N=999999999999"), ("--shape", f"x={2**62},100")])
def test_inputs_that_no_memory_holds_are_not_drawn(cli: Cli, relu: Path, sizes: tuple[str, str]) -> None:
    assert "cannot be drawn with the shape [" in cli("run", relu, "--random", *sizes).error()
