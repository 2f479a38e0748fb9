# SPDX-License-Identifier: Apache-2.0
"""Quotients by constants whose reciprocals OpenVINO cannot hold in their type."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def quotient(divisor: np.ndarray) -> onnx.ModelProto:
    kind = "float16" if divisor.dtype == np.float16 else "float"
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g ({kind}[n, 2] x) => ({kind}[n, 2] y) {{ z = Abs (x) y = Div (z, c) }}'
    )
    made.graph.initializer.append(numpy_helper.from_array(divisor, "c"))
    return made


@pytest.mark.parametrize("divisor", [[6e-8], [1e-5, 2], [-1.4e-5, 1e-7], [6e4, 1]])
@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_float16(name: str, divisor: list[float], request: pytest.FixtureRequest) -> None:
    preset = request.getfixturevalue({"Openvino": "openvino", "OrtOpenvino": "openvino_ep"}[name])
    c = np.float16(divisor)
    prepared = preset.prepare(quotient(c))
    for x in (np.float16([[0, 1e-4], [0.25, 1]]), np.float16([[3, 6e4]])):
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(prepared.run([x])[0], x / c, rtol=5e-4)


def test_ordinary_divisors_stay(openvino: type[omb.Preset]) -> None:
    assert not openvino.prepare(quotient(np.float16([8.0, 0.0]))).adaptations
    assert not openvino.prepare(quotient(np.float32([1e-30, 1e30]))).adaptations


@pytest.mark.parametrize("divisor", [[1e-39], [1e38, 2]])
@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_float32_is_refused_or_left_to_onnx_runtime(
    name: str, divisor: list[float], request: pytest.FixtureRequest
) -> None:
    preset = request.getfixturevalue({"Openvino": "openvino", "OrtOpenvino": "openvino_ep"}[name])
    c = np.float32(divisor)
    if name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="reciprocal"):
            preset.prepare(quotient(c))
        return
    x = np.float32([[1e-5, 1], [3e38, 5]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(preset.prepare(quotient(c)).run([x])[0], x / c, rtol=1e-6, atol=1e-38)


def test_one_large_divisor_stays(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(quotient(np.float32([1e38])))
    assert not prepared.adaptations
    np.testing.assert_allclose(prepared.run([np.float32([[3e38, 1e38]])])[0], [[3, 1]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_quotients_of_constants_are_computed_ahead(openvino: type[omb.Preset], dtype: type[np.floating]) -> None:
    least = np.finfo(dtype).smallest_subnormal
    dividend, divisor = np.array([least, 0, 3], dtype), np.array([least, least, 7], dtype)
    info = onnx.helper.make_tensor_value_info("y", onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3])
    constants = [numpy_helper.from_array(dividend, "a"), numpy_helper.from_array(divisor, "b")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Div", ["a", "b"], ["y"])], "g", [], [info], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    np.testing.assert_allclose(openvino.prepare(model).run([])[0], dividend / divisor, rtol=5e-4)


COMPUTED = {
    "cast": "w = Constant <value = float[1] {0.000001}> () c = Cast <to = 10> (w)",
    "passed on": "w = Constant <value = float[1] {0.000001}> () h = Cast <to = 10> (w) c = Identity (h)",
    "moved": "w = Constant <value = float[1] {0.000001}> () h = Cast <to = 10> (w) a = Constant <value = int64[1] {0}> () c = Unsqueeze (h, a)",
    "multiplied": "w = Constant <value = float[1] {0.001}> () h = Cast <to = 10> (w) c = Mul (h, h)",
}


@pytest.mark.parametrize("form", COMPUTED)
@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_divisors_that_are_computed_of_constants(name: str, form: str, request: pytest.FixtureRequest) -> None:
    preset = request.getfixturevalue({"Openvino": "openvino", "OrtOpenvino": "openvino_ep"}[name])
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float16[n, 2] x) => (float16[n, 2] y) {{ {COMPUTED[form]} z = Abs (x) y = Div (z, c) }}'
    )
    x = np.float16([[0, 1e-4], [0.01, 1]])
    with np.errstate(over="ignore"):
        right = (x / np.float16(1e-6)).astype(np.float16)
    np.testing.assert_allclose(preset.prepare(made).run([x])[0], right, rtol=1.5e-2)


@pytest.mark.parametrize("divisors", [(1e-6, 2), (2, 1e-6)])
def test_a_name_that_stands_in_both_branches(openvino: type[omb.Preset], divisors: tuple[float, float]) -> None:
    branches = ", ".join(
        f"{name}_branch = {name} () => (float16[n] {name}y) {{ w{name} = Constant <value = float[1] {{{c:f}}}> () c = CastLike (w{name}, x) {name}y = Div (x, c) }}"
        for name, c in zip(("then", "else"), divisors, strict=True)
    )
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float16[n] x, bool which) => (float16[n] y) {{ y = If (which) <{branches}> }}'
    )
    for branch in (node_branch.g for node_branch in made.graph.node[0].attribute):
        value = divisors[branch.name == "else"]
        del branch.node[:2]
        branch.initializer.append(numpy_helper.from_array(np.float16([value]), "c"))
    prepared = openvino.prepare(made)
    x = np.float16([0, 1e-3])
    for which in (True, False):
        right = (x / np.float16(divisors[not which])).astype(np.float16)
        np.testing.assert_allclose(prepared.run([x, np.array(which)])[0], right, rtol=2e-3)


def test_a_large_constant(openvino: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 17]> g (float16[n, 3000] x) => (float16[n, 3000] y) { y = Div (x, c) }'
    )
    c = np.full(3000, 1e-6, np.float16)
    made.graph.initializer.append(numpy_helper.from_array(c, "c"))
    x = np.full((2, 3000), 0.01, np.float16)
    np.testing.assert_allclose(openvino.prepare(made).run([x])[0], x / c, rtol=1e-3)
