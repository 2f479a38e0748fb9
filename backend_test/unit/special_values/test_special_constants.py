# SPDX-License-Identifier: Apache-2.0
"""Constants with NaN or inf are told where they come to an operator that may lose them, and only there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import onnx_multi_backend as omb

HEAD = '<ir_version: 8, opset_import: ["": 17]>'


def constant_through(body: str, value: float) -> ModelProto:
    """A model whose constant `c` is [1, value, 2]; `body` makes y of it and of the input x."""
    model = parser.parse_model(f"{HEAD} g (float[3] x) => (float[3] y) {{ {body} }}")
    model.graph.initializer.append(numpy_helper.from_array(np.float32([1, value, 2]), "c"))
    return model


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("d = Sin(c) e = Add(d, x) y = Relu(e)", id="behind others"),
        pytest.param("b = CastLike(x, x) d = Neg(c) e = Concat<axis=0>(d, b) f, g = Split<axis=0>(e) y = Relu(f)", id="split"),
        pytest.param(
            """t = Constant<value = bool {1}>() d = Abs(c)
               y = If(t) <then_branch = a () => (float[3] p) { p = Relu(d) }, else_branch = b () => (float[3] q) { q = Identity(x) }>""",
            id="in a branch",
        ),
        pytest.param(
            """d = Abs(c)
               y = Scan<num_scan_inputs=1, body = a (float s) => (float p) { p = Relu(s) }>(d)""",
            id="into a Scan",
        ),
    ],
)  # fmt: skip
def test_a_constant_is_followed(body: str, openvino: type[omb.Preset]) -> None:
    with pytest.warns(omb.PrecisionWarning, match="constant 'c' holds NaN.*Relu: 0"):
        openvino.prepare(constant_through(body, np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        openvino.prepare(constant_through(body, 3))


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param("r = Relu(x) y = Add(r, c)", np.nan, id="behind the Relu"),
        pytest.param("b = IsNaN(c) r = Relu(x) y = Where(b, x, r)", np.nan, id="as truth values"),
        pytest.param("s = Shape(c) d = Expand(x, s) y = Relu(d)", np.nan, id="its shape"),
        pytest.param("r = Relu(x) m = Min(r, c) y = Neg(m)", np.inf, id="a limit of inf"),
        pytest.param("m = Add(x, c) y = Softmax(m)", -np.inf, id="a mask of -inf"),
        pytest.param("h = ReduceMax<keepdims=0>(c) m = Clip(x, , h) y = Softmax(m)", np.inf, id="no highest number"),
    ],
)
def test_what_is_not_lost_is_not_told(body: str, value: float, openvino: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        openvino.prepare(constant_through(body, value))


def test_an_infinity_is_told_where_nodes_make_nan_of_it_that_is_lost(openvino: type[omb.Preset]) -> None:
    with pytest.warns(omb.PrecisionWarning, match="constant 'c' holds inf.*Relu: 0, of NaN that a node makes of it"):
        openvino.prepare(constant_through("d = Sub(x, c) e = Add(d, c) y = Relu(e)", np.inf))


def test_a_large_float64_costs_no_warning_of_numpy(openvino: type[omb.Preset]) -> None:
    """The lowest one is what an attention's mask is made of."""
    model = parser.parse_model(
        f"{HEAD} g (double[3] x, bool[3] t) => (double[3] y) {{ m = Where(t, x, c) y = Softmax(m) }}"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float64([np.finfo(np.float64).min]), "c"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", omb.PrecisionWarning)  # float64 is computed in float32
        openvino.prepare(model)
