# SPDX-License-Identifier: Apache-2.0
"""Results beyond int32 of constants that a run chooses from, on engines that compute int64 in int32."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

CHOICES = {
    "by a bool": ("bool[n] x", "w = Where (x, large, four)", [True, False]),
    "by a comparison of floats": ("float[n] x", "e = Less (x, half) w = Where (e, large, four)", np.float32([0, 1])),
    "by an index": ("int64[n] x", "w = Gather (both, x)", [1, 0]),
    "by a count": ("bool[n] x", "c = Cast <to = 7> (x) w = Mul (c, large)", [True, False]),
    "by a position": ("float[n] x", "i = ArgMax <keepdims = 1> (x) w = Gather (both, i)", np.float32([0, 1])),
}


def model(choice: str, behind: str) -> onnx.ModelProto:
    given, nodes, _ = CHOICES[choice]
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g ({given}) => (int64[m] y)
        <int64 large = {{2000000000}}, int64 four = {{4}}, int64[2] both = {{4, 2000000000}}, float half = {{0.5}}> {{
        {nodes} y = {behind} }}"""
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_what_may_leave_int32_is_told(openvino: type[omb.Preset], choice: str) -> None:
    with pytest.warns(omb.PrecisionWarning, match="what a run chooses from constants .*Add"):
        openvino.prepare(model(choice, "Add (w, w)"))
    with pytest.raises(omb.UnsupportedModelError, match="may leave what int32 holds"):
        openvino.prepare(model(choice, "Add (w, w)"), precision_policy="strict")


@pytest.mark.filterwarnings("error::onnx_multi_backend.PrecisionWarning")
@pytest.mark.parametrize("choice", CHOICES)
def test_what_stays_within_is_computed(openvino: type[omb.Preset], ort_cpu: type[omb.Preset], choice: str) -> None:
    kept = model(choice, "Sub (w, four)")
    x = np.array(CHOICES[choice][2])
    np.testing.assert_array_equal(openvino.prepare(kept).run([x])[0], ort_cpu.prepare(kept).run([x])[0], strict=True)


ORDINARY = {
    "a float made an int32": ("float[n] x", "a = Cast <to = 6> (x) b = Cast <to = 7> (a) y = Add (b, one)"),
    "an index": ("float[n] x", "a = Cast <to = 6> (x) b = Cast <to = 7> (a) i = Sub (b, b) y = Gather (both, i)"),
    "int32 added": ("int32[n] x", "a = Add (x, x) b = Cast <to = 7> (a) y = Sub (b, one)"),
    "a quotient": (
        "float[n] x",
        "a = Cast <to = 6> (x) b = Cast <to = 7> (a) c = Div (b, two) d = Mul (c, two) y = Sub (b, d)",
    ),
    "a size": ("float[n] x", "s = Shape (x) y = Add (s, one)"),
    "sizes of what a condition chooses": (
        "bool[n] x",
        "e = Where (x, one, two) s = Shape (e) p = Mul (s, s) y = Add (p, s)",
    ),
    "a size and much": ("float[n] x", "s = Shape (x) y = Add (s, large)"),
    "a mask": ("float[n] x", "z = Less (x, half) c = Cast <to = 7> (z) d = Sub (one, c) y = Mul (d, large)"),
}


@pytest.mark.filterwarnings("error::onnx_multi_backend.PrecisionWarning")
@pytest.mark.parametrize("form", ORDINARY)
def test_ordinary_models_are_taken_as_they_are(
    openvino: type[omb.Preset], ort_cpu: type[omb.Preset], form: str
) -> None:
    given, nodes = ORDINARY[form]
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g ({given}) => (int64[m] y)
        <int64 one = {{1}}, int64 two = {{2}}, int64 large = {{2000000000}}, int64[2] both = {{4, 9}}, float half = {{0.5}}> {{ {nodes} }}"""
    )
    x = np.array([1, 2, -3]).astype(
        onnx.helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type)
    )
    np.testing.assert_array_equal(openvino.prepare(made).run([x])[0], ort_cpu.prepare(made).run([x])[0], strict=True)


def test_a_constant_of_the_same_name_in_another_branch_is_another(openvino: type[omb.Preset]) -> None:
    branches = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 15]> g (bool[n] x, bool p) => (int64[m] y) <int64 large = {2000000000}, int64 four = {4}> {
        y = If (p) <then_branch = a () => (int64[1] u) { c = Constant <value = int64[1] {3}> () u = Add (c, c) },
                    else_branch = b () => (int64[k] v) { c = Where (x, large, four) v = Add (c, c) }> }"""
    )
    with pytest.warns(omb.PrecisionWarning, match="what a run chooses"):
        openvino.prepare(branches)


def test_a_product_along_axes_of_a_run_is_told(openvino: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (int64[1] x) => (int64[1] y) <int64[3] c = {-16777215, -8388609, 7}> {
        y = ReduceProd <keepdims = 1> (c, x) }"""
    )
    with pytest.warns(omb.PrecisionWarning, match=r"what a run chooses .*ReduceProd"):
        openvino.prepare(made)
