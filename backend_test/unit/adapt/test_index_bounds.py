# SPDX-License-Identifier: Apache-2.0
"""Indices beyond the rows of a constant, for which OpenVINO gives zeros: a run with them is refused, as ONNX Runtime refuses it."""

from __future__ import annotations

import re

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

ROWS = np.arange(12, dtype=np.float32).reshape(6, 2)
#: What stands between the input and the index, and between the stored rows and the data.
FORMS = {
    "plain": "y = Gather (w, i)",
    "in another shape": "u = Unsqueeze (i, one) t = Transpose (u) y = Gather (w, t)",
    "in another type": "t = Cast <to = 7> (i) y = Gather (w, t)",
    "of dequantized rows": "d = DequantizeLinear (q, s) y = Gather (d, i)",
    "of a Constant": "c = Constant <value = float[6, 2] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}> () y = Gather (c, i)",
    "along the second axis": "y = Gather <axis = 1> (v, i)",
}


def model(body: str, kind: str = "int64") -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g ({kind}[n] i) => (float[a, b] y)
        <int64[1] one = {{1}}, int8[6, 2] q = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, float s = {{1}}> {{ {body} }}"""
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(ROWS, "w"))
    made.graph.initializer.append(onnx.numpy_helper.from_array(ROWS.T.copy(), "v"))
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_indices_beyond_the_rows(openvino: type[omb.Preset], kind: str, form: str) -> None:
    prepared = openvino.prepare(model(FORMS[form], kind))
    fitting = np.array([0, 5, -6, -1], kind)
    (y,) = prepared.run(fitting)
    right = ROWS[fitting].T if "second" in form else ROWS[fitting]
    np.testing.assert_array_equal(y.reshape(right.shape), right)
    for beyond in (6, -7, 2**31 - 1):
        with pytest.raises(omb.InputError, match=re.escape(f"input 'i': element [1] is {beyond}, an index")) as told:
            prepared.run(np.array([0, beyond], kind))
        assert "has 6 along axis" in str(told.value)
        assert "from -6 to 5" in str(told.value)


def test_rows_of_a_list(openvino: type[omb.Preset]) -> None:
    made = model("c = Constant <value_ints = [7, 8, 9]> () t = Gather (c, i) y = Cast <to = 1> (t)")
    made.graph.output[0].type.tensor_type.shape.dim.pop()
    prepared = openvino.prepare(made)
    assert prepared.run(np.array([2, -3]))[0].tolist() == [9, 7]
    with pytest.raises(omb.InputError, match="has 3 along axis 0"):
        prepared.run(np.array([3]))


def test_beside_a_bound_of_another_kind(openvino: type[omb.Preset]) -> None:
    made = model(
        "t = Gather (w, i) j = Add (i, large) f = Cast <to = 1> (j) m = ReduceMax <keepdims = 0> (f) y = Add (t, m)"
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2**31 - 4]), "large"))
    prepared = openvino.prepare(made)
    prepared.run(np.array([-6, 3]))
    for beyond in (-7, 4):
        with pytest.raises(omb.InputError, match=f"is {beyond}"):
            prepared.run(np.array([beyond, 1]))


def test_the_smaller_of_two(openvino: type[omb.Preset]) -> None:
    made = model("a = Gather (w, i) b = Gather (short, i) y = Add (a, b)")
    made.graph.initializer.append(onnx.numpy_helper.from_array(ROWS[:4], "short"))
    prepared = openvino.prepare(made)
    assert prepared.run(np.array([3]))[0].tolist() == [[12, 14]]
    with pytest.raises(omb.InputError, match="'short' has 4 along axis 0"):
        prepared.run(np.array([4]))


@pytest.mark.parametrize(
    "body",
    [
        "z = Mul (i, i) m = Min (i, one) y = Gather (w, m)",  # computed
        "h = Slice (i, zero, one) y = Gather (w, h)",  # not all of them
    ],
)
def test_other_indices_are_not_held_to_the_rows(openvino: type[omb.Preset], body: str) -> None:
    made = model(body)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    assert openvino.prepare(made).run(np.array([1, 100]))[0][0].tolist() == [2, 3]


def test_a_branch_that_is_not_taken(openvino: type[omb.Preset]) -> None:
    """Its Gather reads nothing."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[n] i, bool c) => (float[a, b] y) <float[1, 2] z = {7, 7}> {
        y = If (c) <then_branch = t () => (float[a, b] p) { p = Gather (w, i) }, else_branch = e () => (float[a, b] q) { q = Identity (z) }> }"""
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(ROWS, "w"))
    assert openvino.prepare(made).run([np.array([100]), np.array(False)])[0].tolist() == [[7, 7]]
