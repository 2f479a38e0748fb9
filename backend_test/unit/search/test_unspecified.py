# SPDX-License-Identifier: Apache-2.0
"""Forms for which ONNX does not say what is right are known to the searches."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from backend_test.search.unspecified import unspecified


@pytest.mark.parametrize(("height", "told"), [(1, True), (2, False)])
def test_a_grid_of_one_place_is_not_specified(height: int, told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]> g (float[1, 2, 3] x, int64[4] s) => (float[1, h, 2, 2] y) {
        y = AffineGrid <align_corners = 1> (x, s) }"""
    )
    held = {"x": np.ones((1, 2, 3), np.float32), "s": np.array([1, 1, height, 2])}
    assert bool(unspecified(model, [held])) is told


@pytest.mark.parametrize(("number", "told"), [(0, True), (np.inf, True), (3, False)])
def test_the_scale_of_zeros_alone_is_not_specified(number: float, told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]> g (float[2] x) => (uint8[2] y, float s, uint8 z) {
        y, s, z = DynamicQuantizeLinear (x) }"""
    )
    assert bool(unspecified(model, [{"x": np.float32([0, number])}])) is told


@pytest.mark.parametrize(("largest", "told"), [(1e20, True), (np.inf, True), (1e18, False)])
def test_a_determinant_of_products_that_are_not_finite_is_not_specified(largest: float, told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]> g (float[2, 2] x) => (float y) { y = Det (x) }"""
    )
    held = {"x": np.float32([[1, largest], [2, 3]])}
    assert bool(unspecified(model, [held])) is told


@pytest.mark.parametrize(
    ("largest", "alpha", "told"), [(1 << 20, 2.0, True), (1 << 20, 1.0, False), (1 << 10, 2.0, False)]
)
def test_integers_that_leave_their_type_beside_a_float_are_not_specified(
    largest: int, alpha: float, told: bool
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 13]> g (int32[2, 2] x, int32[2, 2] w) => (int32[2, 2] y) {{
        y = Gemm <alpha = {alpha}> (x, w) }}"""
    )
    held = {"x": np.int32([[1, largest], [2, 3]]), "w": np.int32([[largest, 1], [1, 1]])}
    assert bool(unspecified(model, [held])) is told


@pytest.mark.parametrize(("largest", "told"), [(1e3, True), (1e2, False)])
def test_scores_beyond_float16_are_not_specified(largest: float, told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]> g (float16[1, 1, 2, 2] q, float16[1, 1, 2, 2] k) => (float16[1, 1, 2, 2] y) {
        y = Attention (q, k, k) }"""
    )
    held = np.full([1, 1, 2, 2], largest, np.float16)
    assert bool(unspecified(model, [{"q": held, "k": held}])) is told


@pytest.mark.parametrize(("kind", "told"), [("int64", True), ("float", False)])
def test_the_logarithm_of_integers_is_not_specified_in_a_scan_either(kind: str, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g ({kind}[2, 3] x) => ({kind}[2, 1] y) {{
        y = Scan <num_scan_inputs = 1, body = b ({kind}[3] r) => ({kind}[1] o) {{ o = ReduceLogSum (r) }}> (x) }}"""
    )
    assert bool(unspecified(model, [{}])) is told


def test_the_logarithm_of_integers_is_not_specified_in_a_function_either() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18, "l": 1]> g (int64[2, 3] x) => (int64[1, 1] y) { y = l.f (x) }
        <domain: "l", opset_import: ["": 18]> f (a) => (b) { b = ReduceLogSum (a) }"""
    )
    assert unspecified(model, [{}])


@pytest.mark.parametrize(("number", "told"), [(-1.5, True), (4.0, True), (3.5, False), (-0.5, False)])
def test_a_float_beyond_two_bits_is_not_specified(number: float, told: bool) -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.UINT2)
    shape = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [shape], []))
    assert bool(unspecified(model, [{"x": np.float32([number])}])) is told


@pytest.mark.parametrize(("largest", "told"), [(40_000, True), (30_000, False)])
def test_a_root_of_squares_that_leave_the_type_is_not_specified(largest: int, told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (int32[2] x) => (int32[1] y) { y = ReduceL2 (x) }"""
    )
    assert bool(unspecified(model, [{"x": np.int32([largest, -largest])}])) is told


@pytest.mark.parametrize(
    ("scale", "mode", "told"),
    [(0.75, "align_corners", True), (0.5, "align_corners", False), (0.75, "half_pixel", False)],
)
def test_corners_of_a_length_that_is_cut_are_not_specified(scale: float, mode: str, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g (float[1, 2] x, float[2] s) => (float[1, n] y) {{
        y = Resize <coordinate_transformation_mode = "{mode}", mode = "linear"> (x, , s) }}"""
    )
    held = {"x": np.ones((1, 2), np.float32), "s": np.float32([1, scale])}
    assert bool(unspecified(model, [held])) is told


@pytest.mark.parametrize(("axes", "told"), [([1, -1], True), ([0, 1], False)])
def test_an_axis_that_is_named_twice_is_not_specified(axes: list[int], told: bool) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[2, 3] x, int64[2] axes) => (float[n] y) {
        y = ReduceSum <keepdims = 0> (x, axes) }"""
    )
    assert bool(unspecified(model, [{"x": np.ones((2, 3), np.float32), "axes": np.array(axes)}])) is told


@pytest.mark.parametrize(("attribute", "told"), [("softcap = -1.0", True), ("softcap = 2.0", False)])
def test_attributes_of_attention_that_onnx_does_not_define(attribute: str, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 23]> g (float[1, 1, 2, 4] q) => (float[1, 1, 2, 4] y) {{
        y = Attention <{attribute}> (q, q, q) }}"""
    )
    assert bool(unspecified(model, [{"q": np.ones((1, 1, 2, 4), np.float32)}])) is told


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ("Celu <alpha = 0.0> (x)", True),
        ("Celu <alpha = 2.0> (x)", False),
        ("QuantizeLinear (x, below)", True),
        ("QuantizeLinear (x, above)", False),
        ("Clip (x, below)", True),
        ("Clip (x, below, above)", False),
        ("Attention <is_causal = -1> (t, t, t)", True),
        ("Attention <is_causal = 1> (t, t, t)", False),
    ],
)
def test_attributes_scales_and_limits(node: str, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 23]> g (float[2] x, float[1, 1, 2, 2] t) => (y)
        <float below = {{-0.5}}, float above = {{0.5}}> {{ y = {node} }}"""
    )
    t = np.ones((1, 1, 2, 2), np.float32)
    assert bool(unspecified(model, [{"x": np.float32([1, np.inf]), "t": t}])) is told
