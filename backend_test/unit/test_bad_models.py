# SPDX-License-Identifier: Apache-2.0
"""A model that cannot run is refused with its own typed error that says what is wrong, where, and what to do."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

RELU = models.relu()
BYTES = models.linear(64, 64).SerializeToString()


def _file(folder: Path, content: bytes) -> Path:
    path = folder / "some.onnx"
    path.write_bytes(content)
    return path


def _link_loop(folder: Path) -> Path:
    (folder / "loop.onnx").symlink_to(folder / "loop.onnx")
    return folder / "loop.onnx"


#: How to make it, and what the message holds.
UNREADABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing file": (lambda f: f / "nowhere.onnx", r"no file '.*nowhere\.onnx'.*Check"),
    "missing folder": (lambda f: str(f / "no" / "where.onnx"), r"no file '.*where\.onnx'"),
    "directory": (lambda f: f, "is a directory.*Pass the .onnx file"),
    "empty path": (lambda f: "", "The path of the model is empty"),
    "a file as a folder": (lambda f: _file(f, b"x") / "deeper.onnx", "cannot be read: Not a directory"),
    "link to itself": (_link_loop, "cannot be read"),
    "path with a null byte": (lambda f: "some\0.onnx", "null byte"),
    "empty file": (lambda f: _file(f, b""), r"some\.onnx' is empty: 0 bytes.*again"),
    "empty bytes": (lambda f: b"", "bytes is empty"),
    "truncated file": (
        lambda f: _file(f, BYTES[: len(BYTES) // 2]),
        r"some\.onnx' is not an ONNX model, or is truncated",
    ),
    "truncated bytes": (lambda f: BYTES[:-1], "is not an ONNX model, or is truncated"),
    "random bytes": (lambda f: np.random.default_rng(7).bytes(4096), "is not an ONNX model, or is truncated"),
    "text": (lambda f: _file(f, b"<!DOCTYPE html><html>Not found</html>"), "is not an ONNX model"),
    "zeros": (lambda f: bytes(100), "is not an ONNX model"),
    "an empty ModelProto's bytes": (lambda f: ModelProto(ir_version=8).SerializeToString(), "lacks a graph"),
    "an empty ModelProto": (lambda f: ModelProto(), "not a valid ONNX model"),
    "no opset": (lambda f: ModelProto(ir_version=8, graph=RELU.graph), "opset_import"),
    "a tensor for a model": (lambda f: onnx.numpy_helper.from_array(np.zeros(3)).SerializeToString(), "ONNX model"),
    "a number for a model": (lambda f: 5, "path, bytes or an onnx.ModelProto; int was given"),
    "None for a model": (lambda f: None, "NoneType was given"),
}


def assert_refused(preset: type[omb.Preset], model: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        preset.prepare(model)
    assert isinstance(raised.value, omb.OnnxMultiBackendError)
    assert preset.is_compatible(model) is False
    answer = preset.compatibility(model)
    assert not answer
    assert all(isinstance(r, str) and r for r in answer.reasons)
    assert answer.reasons


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_holds_no_model_is_an_invalid_model(engine: type[omb.Preset], tmp_path: Path, name: str) -> None:
    make, message = UNREADABLE[name]
    assert_refused(engine, make(tmp_path), omb.InvalidModelError, message)


def _cycle() -> ModelProto:
    nodes = [models.node("Add", ["x", "b"], ["a"]), models.node("Neg", ["a"], ["b"]), models.node("Neg", ["b"], ["y"])]
    return models.model(nodes, [models.tensor("x")], [models.tensor("y")])


def _two(first: tuple[str, str], second: tuple[str, str], **parts: Any) -> ModelProto:
    nodes = [models.node(op, ["x"], [out], name=out + op) for op, out in (first, second)]
    return models.model(nodes, [models.tensor("x")], [models.tensor("y")], **parts)


def _with_output_of_type(elem_type: int) -> ModelProto:
    return models.one_node("Relu", [models.tensor("x")], [models.tensor("y", elem_type=elem_type)])


def _short_weight() -> ModelProto:
    made = models.linear()
    made.graph.initializer[0].raw_data = made.graph.initializer[0].raw_data[:-4]
    return made


def _reference(domain: str = "", **attributes: Any) -> ModelProto:
    """A Softmax whose axis is that of a local function, in none, or in one that declares these."""
    made = models.one_node("Softmax", [models.tensor("x")], [models.tensor("y")], axis=1)
    made.graph.node[0].attribute[0].ref_attr_name = "along"
    if not domain:
        return made
    function = onnx.helper.make_function(
        domain, "F", ["x"], ["y"], made.graph.node, made.opset_import, list(attributes)
    )
    return models.model(
        [models.node("F", ["x"], ["y"], domain=domain, **attributes)],
        [models.tensor("x")],
        [models.tensor("y")],
        functions=[function],
        opsets={"": made.opset_import[0].version, domain: 1},
    )


def _segment() -> ModelProto:
    made = models.linear()
    made.graph.initializer[0].segment.begin = 0
    made.graph.initializer[0].segment.end = 1
    return made


def _default_of_another_type() -> ModelProto:
    made = models.one_node(
        "Gather", [models.tensor("x"), models.tensor("i", [], TensorProto.STRING)], [models.tensor("y")]
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(0), "i"))
    return made


WRONG: dict[str, tuple[ModelProto, str]] = {
    "cycle": (_cycle(), "not a valid ONNX model.*(?i:topological|sorted|cycle|SSA)"),
    "one name for two node outputs": (_two(("Relu", "y"), ("Neg", "y")), r"not a valid ONNX model.*SSA"),
    "one name for an input and a node output": (_two(("Relu", "x"), ("Neg", "y")), "not a valid ONNX model.*(SSA|x)"),
    "one name for two inputs": (
        models.one_node("Add", [models.tensor("x"), models.tensor("x")], [models.tensor("y")]),
        "not a valid ONNX model.*x",
    ),
    "an input that nothing makes": (
        models.model([models.node("Relu", ["nowhere"], ["y"])], [models.tensor("x")], [models.tensor("y")]),
        "not a valid ONNX model.*nowhere",
    ),
    "an output that nothing makes": (
        models.model([models.node("Relu", ["x"], ["z"])], [models.tensor("x")], [models.tensor("y")]),
        "not a valid ONNX model.*y",
    ),
    "inputs of two types": (
        models.one_node("Add", [models.tensor("x"), models.tensor("z", elem_type=models.INT64)], [models.tensor("y")]),
        "not a valid ONNX model.*type",
    ),
    "a declared output type that is not the computed one": (
        _with_output_of_type(models.INT64),
        "not a valid ONNX model.*(?i:type)",
    ),
    "a weight with too few bytes": (_short_weight(), "not a valid ONNX model.*w"),
    "an attribute of a wrong type": (
        models.one_node("Softmax", [models.tensor("x")], [models.tensor("y")], axis="one"),
        "not a valid ONNX model.*axis",
    ),
    "an attribute that there is not": (
        models.one_node("Relu", [models.tensor("x")], [models.tensor("y")], slope=0.1),
        "not a valid ONNX model.*slope",
    ),
    "too many node inputs": (
        models.one_node("Relu", [models.tensor("x"), models.tensor("z")], [models.tensor("y")]),
        "not a valid ONNX model.*Relu",
    ),
    "a shape that cannot be": (
        models.one_node(
            "MatMul", [models.tensor("x", [2, 3]), models.tensor("z", [4, 5])], [models.tensor("y", [2, 5])]
        ),
        "not a valid ONNX model.*(?i:dimension)",
    ),
    "no type for an input": (
        models.model([models.node("Relu", ["x"], ["y"])], [onnx.ValueInfoProto(name="x")], [models.tensor("y")]),
        "not a valid ONNX model.*type",
    ),
    "an attribute of a local function where there is none": (
        _reference(),
        "not a valid ONNX model.*axis.*Softmax.*along",
    ),
    "a segment of a tensor": (_segment(), "not a valid ONNX model.*w.*segment"),
    "an initializer of another type than its input": (
        _default_of_another_type(),
        "not a valid ONNX model.*i.*string.*int64",
    ),
    "an operator of the default domain that there is not": (
        models.one_node("Reluu", [models.tensor("x")], [models.tensor("y")]),
        "Reluu",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_graph_is_an_invalid_model(engine: type[omb.Preset], name: str) -> None:
    made, message = WRONG[name]
    assert_refused(engine, made, omb.InvalidModelError, message)


def test_an_attribute_that_the_local_function_does_not_have_is_left_out(engine: type[omb.Preset]) -> None:
    """As engines have it: the operator's default counts."""
    made = _reference("local", along=1)
    del made.functions[0].attribute[:]
    del made.graph.node[0].attribute[:]
    prepared = engine.prepare(made)
    assert prepared.run([np.zeros((2, 3), np.float32)])[0] == pytest.approx(np.full((2, 3), 1 / 3))


def test_the_long_name_of_the_domain_of_onnx(engine: type[omb.Preset]) -> None:
    """OpenVINO lacked each of its operators."""
    made = _two(("Relu", "z"), ("Neg", "y"))
    made.graph.node[1].input[0] = "z"
    for node in made.graph.node:
        node.domain = "ai.onnx"
    prepared = engine.prepare(made)
    assert prepared.run([np.float32([[1, -2, 3]])])[0].tolist() == [[-1, 0, -3]]


def test_an_attribute_of_the_local_function_around_it_is_right(engine: type[omb.Preset]) -> None:
    prepared = engine.prepare(_reference("local", along=1))
    assert prepared.run([np.zeros((2, 3), np.float32)])[0] == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("form", ["bytes", "path"])
@pytest.mark.parametrize("name", ["cycle", "a declared output type that is not the computed one"])
def test_a_wrong_graph_is_refused_in_each_form(engine: type[omb.Preset], tmp_path: Path, name: str, form: str) -> None:
    made, message = WRONG[name]
    data = made.SerializeToString()
    assert_refused(engine, data if form == "bytes" else _file(tmp_path, data), omb.InvalidModelError, message)


def test_an_operator_of_an_unknown_domain_is_unsupported_and_named(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Frobnicate", ["x"], ["t"], domain="com.example"), models.node("Relu", ["t"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y")],
        opsets={"com.example": 1},
    )
    assert_refused(engine, made, omb.UnsupportedModelError, r"com\.example\.Frobnicate")
    with pytest.raises(omb.UnsupportedModelError) as raised:
        engine.prepare(made)
    assert "com.example.Frobnicate" in raised.value.operators
    assert any("the_Frobnicate" in r or "Frobnicate" in r for r in raised.value.reasons)


def test_a_domain_without_an_opset_import_is_named(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Frobnicate", ["x"], ["y"], domain="com.example")], [models.tensor("x")], [models.tensor("y")]
    )
    assert_refused(engine, made, omb.OnnxMultiBackendError, r"com\.example")


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_an_opset_from_the_future_is_refused_with_the_highest_known_one(engine: type[omb.Preset], domain: str) -> None:
    known = onnx.defs.onnx_opset_version() if domain == "" else onnx.defs.onnx_ml_opset_version()
    made = models.relu()
    if domain:
        made.opset_import.append(helper.make_opsetid(domain, 999))
    else:
        made.opset_import[0].version = 999
    assert_refused(engine, made, omb.UnsupportedModelError, rf"opset 999 of .*up to {known}.*Upgrade onnx")


def test_an_ir_version_from_the_future_is_refused_with_the_highest_known_one(engine: type[omb.Preset]) -> None:
    made = models.relu()
    made.ir_version = 999
    assert_refused(engine, made, omb.UnsupportedModelError, rf"IR version 999.*up to {onnx.IR_VERSION}.*Upgrade onnx")


def _in_function(node: onnx.NodeProto, opset: int) -> ModelProto:
    function = helper.make_function("local", "F", ["a"], ["b"], [node], [helper.make_opsetid("", opset)])
    call = [models.node("F", ["x"], ["y"], domain="local")]
    return models.model(call, [models.tensor("x")], [models.tensor("y")], opsets={"local": 1}, functions=[function])


def test_an_opset_from_the_future_is_refused_in_a_local_function_too(engine: type[omb.Preset]) -> None:
    made = _in_function(helper.make_node("Relu", ["a"], ["b"]), 999)
    assert_refused(engine, made, omb.UnsupportedModelError, r"opset 999 of ai\.onnx;.*Upgrade onnx")


def test_an_opset_from_the_future_of_a_preview_is_refused_where_it_is_used(engine: type[omb.Preset]) -> None:
    values = [models.tensor(name, [1, 2, 4, 8]) for name in "qkvy"]
    made = models.one_node("FlexAttention", values[:3], values[3:])
    made.graph.node[0].domain = "ai.onnx.preview"
    made.opset_import.append(helper.make_opsetid("ai.onnx.preview", 999))
    assert_refused(engine, made, omb.UnsupportedModelError, r"opset 999 of ai\.onnx\.preview;.*up to 1\b")
    unused = models.relu()
    unused.opset_import.append(helper.make_opsetid("ai.onnx.preview", 999))
    assert engine.is_compatible(unused)


@pytest.mark.parametrize(
    ("operator", "opset", "cure"),
    [
        ("BitCast", 25, "BitCast came with opset 26 of ai.onnx; the model imports 25"),
        ("LabelEncoder", 20, "Another domain has LabelEncoder"),
        ("Reluu", 20, "knows no operator Reluu. Correct its name"),
    ],
)
def test_an_operator_that_the_opset_lacks_comes_with_what_to_do(
    engine: type[omb.Preset], operator: str, opset: int, cure: str
) -> None:
    made = models.one_node(operator, [models.tensor("x")], [models.tensor("y")], opset=opset)
    assert_refused(engine, made, omb.InvalidModelError, f"No Op registered for {operator}.*{cure}")
    made = _in_function(helper.make_node(operator, ["a"], ["b"]), opset)
    made.opset_import[0].version = opset
    assert_refused(engine, made, omb.InvalidModelError, f"No Op registered for {operator}.*{cure}")


@pytest.mark.parametrize("domain", ["ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft", "com.example"])
def test_an_unknown_operator_of_a_domain_that_grows_is_unsupported(engine: type[omb.Preset], domain: str) -> None:
    made = models.model(
        [models.node("Frobnicate", ["x"], ["y"], domain=domain)],
        [models.tensor("x")],
        [models.tensor("y")],
        opsets={domain: 1},
    )
    assert_refused(engine, made, omb.UnsupportedModelError, rf"it lacks {domain}\.Frobnicate. .*'the_Frobnicate'")


def test_an_opset_of_nothing_is_refused(engine: type[omb.Preset]) -> None:
    made = models.relu()
    made.opset_import[0].version = 0
    assert_refused(engine, made, omb.InvalidModelError, "Relu with domain_version of 0")


def test_an_error_can_be_pickled_with_what_it_says(ort_cpu: type[omb.Preset]) -> None:
    error = omb.UnsupportedModelError("no", operators=["Relu"], reasons=["why"])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.operators, again.reasons) == ("no", ("Relu",), ("why",))


@pytest.mark.parametrize(
    ("error", "built_in"),
    [
        (omb.InvalidModelError, ValueError),
        (omb.UnsupportedModelError, NotImplementedError),
        (omb.DeviceError, ValueError),
        (omb.DeviceUnavailableError, RuntimeError),
        (omb.EngineNotInstalledError, ImportError),
        (omb.OptionError, ValueError),
        (omb.OptionTypeError, TypeError),
        (omb.CalibrationTableError, ValueError),
        (omb.InputError, ValueError),
        (omb.RunError, RuntimeError),
    ],
)
def test_each_error_is_also_a_fitting_built_in(error: type[Exception], built_in: type[Exception]) -> None:
    assert issubclass(error, omb.OnnxMultiBackendError)
    assert issubclass(error, built_in)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _file(tmp_path, BYTES)
    path.chmod(0)
    assert_refused(engine, path, omb.InvalidModelError, "cannot be read: Permission denied")


def test_what_comes_behind_an_operator_that_onnx_infers_nothing_for_is_named_too(openvino: type[omb.Preset]) -> None:
    nodes = [
        models.node("SVMRegressor", ["x"], ["scaled"], domain="ai.onnx.ml", coefficients=[1.0], rho=[0.0]),
        models.node("LinearRegressor", ["scaled"], ["y"], domain="ai.onnx.ml", coefficients=[1.0, 2.0, 3.0]),
    ]
    made = models.model(
        nodes, [models.tensor("x")], [models.tensor("y", ("N", 1))], opsets={"ai.onnx.ml": 1, "my.domain": 1}
    )
    with pytest.raises(omb.UnsupportedModelError) as refused:
        openvino.prepare(made)
    assert refused.value.operators == ("ai.onnx.ml.SVMRegressor", "ai.onnx.ml.LinearRegressor")


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"), [(["x", ""], ["y"], "2 inputs"), (["x"], ["y", "z"], "2 outputs")]
)
def test_a_call_that_does_not_fit_its_function(
    engine: type[omb.Preset], inputs: list[str], outputs: list[str], words: str
) -> None:
    function = helper.make_function(
        "local", "f", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    model = models.model(
        [helper.make_node("f", inputs, outputs, domain="local")],
        [models.tensor("x")],
        [models.tensor("y")],
        opsets={"": 20, "local": 1},
    )
    model.functions.append(function)
    with pytest.raises(omb.InvalidModelError, match=rf"local\.f has {words}, and the function has 1"):
        engine.prepare(model)


@pytest.mark.parametrize(
    ("operator", "constant"),
    [("Gather", np.int64([1, 2])), ("ReduceMax", np.int64([1])), ("Max", np.array([1.0, np.nan])), ("Mul", np.ones(3))],
)
def test_a_constant_of_a_byte_too_many_is_no_surprise(
    preset: type[omb.Preset], operator: str, constant: np.ndarray[Any, Any]
) -> None:
    """Engines may read as much as the shape says."""
    size = [None, len(constant)] if operator in ("Max", "Mul") else [4, 3]
    given = constant.astype(np.float32) if constant.dtype.kind == "f" else constant
    outputs = [models.tensor("y", None)]
    made = models.model(
        [models.node(operator, ["x", "c"], ["y"])], [models.tensor("x", size)], outputs, initializers={"c": given}
    )
    made.graph.initializer[0].raw_data += b"\0"
    with contextlib.suppress(omb.OnnxMultiBackendError):
        preset.prepare(made)
    assert isinstance(preset.compatibility(made).reasons, tuple)


FALSE_SHAPE = """<ir_version: 8, opset_import: ["": 16]> g (bool b, float[1] x, string[1] t) => (float[s] y, string[1] z) {
    y = If (b) <then_branch = t () => (DECLARED a) { a = Neg (x) }, else_branch = e () => (DECLARED c) { c = Add (x, x) }> z = StringNormalizer (t) }"""


@pytest.mark.parametrize("declared", ["float", "float[1]"])
def test_a_false_shape_is_not_why_an_engine_refuses_a_model(openvino: type[omb.Preset], declared: str) -> None:
    """ONNX Runtime runs such models, and OpenVINO does not look at what branches declare."""
    with pytest.raises(omb.UnsupportedModelError, match="StringNormalizer"):
        openvino.prepare(onnx.parser.parse_model(FALSE_SHAPE.replace("DECLARED", declared)))


@pytest.mark.parametrize("declared", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64])
def test_an_output_that_is_declared_in_another_type(openvino: type[omb.Preset], declared: int) -> None:
    """OpenVINO does not read the declared types of outputs."""
    made = models.model(
        [models.node("HannWindow", ["n"], ["y"])],
        [models.tensor("n", [], TensorProto.INT64)],
        [models.tensor("y", [None], declared)],
        opsets={"": 17},
    )
    assert_refused(openvino, made, omb.InvalidModelError, "Inferred elem type differs")


def test_a_name_that_is_not_utf8(engine: type[omb.Preset]) -> None:
    """It is prepared as the engine prepares it, and what is told of it raises nothing else than our errors."""
    data = models.one_node(
        "Relu", [models.tensor("x", (2,))], [models.tensor("y", (2,))], name="QQQQ"
    ).SerializeToString()
    data = data.replace(b"QQQQ", b"\xff\xfe\x80Q")
    try:
        prepared = engine.prepare(data)
    except omb.OnnxMultiBackendError:
        assert not engine.is_compatible(data)
    else:
        assert [node.op_type for node in prepared.placement()] == ["Relu"]
        assert engine.compatibility(data)
        assert engine.is_compatible(data)
