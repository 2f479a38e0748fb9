# SPDX-License-Identifier: Apache-2.0
"""Attributes of local functions that a call leaves out are what the function says, also where its body takes the call's place."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

LEAKY = "h <b: float = 0.5> (x) => (y) { y = LeakyRelu <alpha: float = @b> (x) }"
#: Calls, and the functions that they call.
CALLS = {
    "a default": ("l.h (x)", LEAKY),
    "given": ("l.h <b = 2.0> (x)", LEAKY),
    "of 0, where the operator's default is 1": (
        "l.h (x)",
        "h <k: int = 0> (x) => (y) { y = ReduceMax <axes = [1], keepdims: int = @k> (x) }",
    ),
    "of a function in a function": (
        "l.f (x)",
        f"f <a: float = 3.0> (x) => (y) {{ y = l.h <b: float = @a> (x) }}\n{LEAKY}",
    ),
    "within a function": ("l.f (x)", f"f (x) => (y) {{ y = l.h (x) }}\n{LEAKY}"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call(preset: type[omb.Preset], call: str) -> None:
    made, functions = CALLS[call]
    opsets = 'opset_import: ["": 17, "l": 1]'
    bodies = "\n".join(f'<domain: "l", {opsets}> {function}' for function in functions.split("\n"))
    model = onnx.parser.parse_model(
        f"<ir_version: 9, {opsets}> g (float[2, 3, 4] x) => (float y) {{ y = {made} }}\n{bodies}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    (result,) = preset.prepare(model, fallback="full").run([x])
    (wanted,) = unoptimized(model, x)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=1e-6)
