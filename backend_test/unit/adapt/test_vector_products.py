# SPDX-License-Identifier: Apache-2.0
"""A product with a constant vector, times a constant: OpenVINO scaled the vector as if it were a matrix."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest


@pytest.mark.parametrize("shape", [(2, 3), (2, 4, 3), (1, 2, 4, 3)])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("constant", ["", "1", "1, 1"])
@pytest.mark.parametrize("reader", ["Mul (m, c)", "Mul (c, m)", "Div (m, c)"])
@pytest.mark.parametrize("columns", [0, 1, 5])
@pytest.mark.parametrize("preset", ["openvino", "openvino_ep"])
def test_a_product_with_a_vector_is_multiplied_as_it_is(
    preset: str,
    columns: int,
    reader: str,
    constant: str,
    fixed: bool,
    shape: tuple[int, ...],
    request: pytest.FixtureRequest,
) -> None:
    sizes = ", ".join(map(str, shape)) if fixed else ", ".join("pqrs"[: len(shape)])
    w = np.arange(3 * max(columns, 1), dtype=np.float32).reshape((3, columns) if columns else 3)
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    c = np.full([1] * len(constant.split(", ") if constant else []), 2, np.float32)
    right = x @ w / c if "Div" in reader else x @ w * c
    declared = ", ".join("abcd"[: right.ndim])
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[{declared}] y, float[{sizes}] z)
        <float[{constant}] c = {{2}}> {{ m = MatMul (x, w) y = {reader} s = Sin (x) z = Cos (s) }}""".replace(
            "float[] c", "float c"
        )
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    (found,) = request.getfixturevalue(preset).prepare(model).run([x])[:1]
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
