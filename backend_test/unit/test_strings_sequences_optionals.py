# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that are not numeric tensors."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TypeProto, ValueInfoProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models


def value(name: str, type_proto: TypeProto) -> ValueInfoProto:
    return helper.make_value_info(name, type_proto)


FLOATS = helper.make_tensor_type_proto(models.FLOAT, ["N"])
FLOAT_SEQUENCE = helper.make_sequence_type_proto(FLOATS)
STRINGS = models.tensor("x", ["N"], models.STRING)

PHRASES = ["", "plain", "ünïcödé ☃", "a longer piece of text"]


def _identity_of_strings() -> object:
    return models.one_node("Identity", [STRINGS], [models.tensor("y", ["N"], models.STRING)])


@pytest.mark.parametrize(
    "array",
    [
        np.array(PHRASES, object),
        np.array(PHRASES, "U"),
        np.array([p.encode() for p in PHRASES], "S"),
        np.array([p.encode() for p in PHRASES], object),
        np.array([PHRASES, PHRASES], object).T[:, 0],
        np.array(PHRASES, np.dtypes.StringDType()),
    ],
    ids=["object", "U", "S", "object of bytes", "strided", "StringDType"],
)
def test_strings_go_in_and_come_out_as_str(ort_cpu: type[omb.Preset], array: np.ndarray) -> None:
    result = ort_cpu.prepare(_identity_of_strings()).run(array)[0]
    assert result.dtype == object
    assert result.tolist() == PHRASES
    assert all(type(s) is str for s in result)


def test_a_single_string_and_no_string_at_all(ort_cpu: type[omb.Preset]) -> None:
    made = models.one_node("Identity", [models.tensor("x", [], models.STRING)], [models.tensor("y", [], models.STRING)])
    assert ort_cpu.prepare(made).run("word")[0] == "word"
    assert ort_cpu.prepare(_identity_of_strings()).run(np.array([], object))[0].shape == (0,)


def test_something_among_the_strings_that_is_none_is_refused(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match=r"element \(1,\) is a float"):
        ort_cpu.prepare(_identity_of_strings()).run(np.array(["a", 1.5], object))


def test_numbers_for_strings_are_refused(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="the model wants strings"):
        ort_cpu.prepare(_identity_of_strings()).run(np.zeros(2, np.float32))


def test_strings_are_computed_with(ort_cpu: type[omb.Preset]) -> None:
    made = models.one_node(
        "StringConcat", [STRINGS, models.tensor("z", ["N"], models.STRING)], [models.tensor("y", ["N"], models.STRING)]
    )
    result = ort_cpu.prepare(made).run([np.array(["a", "b"], "U1"), np.array(["c", "d"], object)])[0]
    assert result.tolist() == ["ac", "bd"]


def test_a_sequence_goes_in(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        [value("s", FLOAT_SEQUENCE)],
        [models.tensor("y", ["N"])],
    )
    rep = ort_cpu.prepare(made)
    assert rep.get_inputs()[0].onnx_type == "seq(tensor(float))"
    for one, other in ((np.float32([1, 2]), np.float32([3])), (np.array([1, 2], ">f4"), np.float32([3, 9])[::2])):
        np.testing.assert_array_equal(rep.run({"s": [one, other]})[0], [1, 2, 3])
    np.testing.assert_array_equal(rep.run([[np.float32([4]), np.float32([5])]])[0], [4, 5])


def test_a_sequence_comes_out_and_is_the_callers(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0)],
        [models.tensor("x", [3])],
        [value("s", FLOAT_SEQUENCE)],
    )
    rep = ort_cpu.prepare(made)
    first = rep.run(np.float32([1, 2, 3]))[0]
    assert isinstance(first, list)
    kept = [float(v) for v in first]
    rep.run(np.float32([7, 8, 9]))
    assert [float(v) for v in first] == kept == [1, 2, 3]


def test_a_wrong_tensor_in_a_sequence_is_named(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        [value("s", FLOAT_SEQUENCE)],
        [models.tensor("y", ["N"])],
    )
    rep = ort_cpu.prepare(made)
    with pytest.raises(omb.InputError, match=r"'s'\[1\].*float64"):
        rep.run({"s": [np.float32([1]), np.float64([1])]})
    with pytest.raises(omb.InputError, match="is a list of arrays"):
        rep.run({"s": np.float32([1])})


def test_an_optional_is_a_value_or_none(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("OptionalHasElement", ["o"], ["y"])],
        [value("o", helper.make_optional_type_proto(FLOATS))],
        [models.tensor("y", [], 9)],
    )
    rep = ort_cpu.prepare(made)
    assert rep.get_inputs()[0].onnx_type == "optional(tensor(float))"
    assert bool(rep.run({"o": np.float32([1])})[0]) is True
    assert bool(rep.run({"o": None})[0]) is False
    assert bool(rep.run([None])[0]) is False
    with pytest.raises(omb.InputError, match="int32"):
        rep.run({"o": np.int32([1])})


def test_an_optional_sequence(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("OptionalGetElement", ["o"], ["s"]), models.node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        [value("o", helper.make_optional_type_proto(FLOAT_SEQUENCE))],
        [models.tensor("y", ["N"])],
    )
    np.testing.assert_array_equal(ort_cpu.prepare(made).run({"o": [np.float32([1]), np.float32([2])]})[0], [1, 2])


def test_an_empty_optional_comes_out_as_none(ort_cpu: type[omb.Preset]) -> None:
    optional = value("y", helper.make_optional_type_proto(FLOATS))
    made = models.model(
        [models.node("Identity", ["o"], ["y"])], [value("o", optional.type)], [optional], opsets={"": 16}
    )
    rep = ort_cpu.prepare(made)
    assert rep.run({"o": None})[0] is None
    np.testing.assert_array_equal(rep.run({"o": np.float32([5])})[0], [5])


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_openvino_says_no_to_sequences_and_optionals(openvino: type[omb.Preset], kind: str) -> None:
    type_proto = FLOAT_SEQUENCE if kind == "sequence" else helper.make_optional_type_proto(FLOATS)
    op_type = "SequenceLength" if kind == "sequence" else "OptionalHasElement"
    elem_type = models.INT64 if kind == "sequence" else 9
    made = models.model(
        [models.node(op_type, ["x"], ["y"])], [value("x", type_proto)], [models.tensor("y", [], elem_type)]
    )
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(made)
