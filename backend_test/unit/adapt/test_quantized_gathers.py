# SPDX-License-Identifier: Apache-2.0
"""A Gather of quantized values with several scales: OpenVINO took scales of another axis, and kept the axis of a number."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

GENERATOR = np.random.default_rng(3)
CHANNELS = 4
SCALES = GENERATOR.uniform(0.01, 0.1, CHANNELS).astype(np.float32)
CONSTANTS = {
    "s": SCALES,
    "z": np.full(CHANNELS, 128, np.uint8),
    "w": GENERATOR.integers(-100, 100, (CHANNELS, CHANNELS)).astype(np.int8),
    "k": GENERATOR.integers(-100, 100, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8),
    "xs": np.float32(0.05),
    "xz": np.uint8(128),
    "number": np.int64(-1),
    "one": np.int64([0]),
    "two": np.int64([1, 0]),
}
BY_CHANNEL = "q = QuantizeLinear <axis = 1> (x, s, z) v = DequantizeLinear <axis = 1> (q, s, z)"
ACTIVATIONS = "q = QuantizeLinear (x, xs, xz) d = DequantizeLinear (q, xs, xz)"
#: What makes the values, and their rank.
FORMS = {
    "by channel": (BY_CHANNEL, 4),
    "a matrix by channel": (BY_CHANNEL, 2),
    "by channel, negated": (f"{BY_CHANNEL.replace('v =', 'u =')} v = Neg (u)", 4),
    "of a convolution": (f"{ACTIVATIONS} f = DequantizeLinear <axis = 0> (k, s) c = Conv (d, f) v = Relu (c)", 4),
    "of a product": (f"{ACTIVATIONS} f = DequantizeLinear <axis = 1> (w, s) v = MatMul (d, f)", 3),
}


def made_of(form: str, axis: int, indices: str, fixed: bool) -> onnx.ModelProto:
    nodes, rank = FORMS[form]
    shape = ", ".join(str(CHANNELS) if fixed else f"d{i}" for i in range(rank))
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[{shape}] x) => (float y) {{ {nodes} y = Gather <axis = {axis}> (v, {indices}) }}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in CONSTANTS.items() if n in read)
    return made


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("indices", ["number", "two"])
@pytest.mark.parametrize(("form", "axis"), [(form, axis) for form, (_, rank) in FORMS.items() for axis in range(rank)])
def test_it_takes_the_scales_of_its_values(
    preset: type[omb.Preset], form: str, axis: int, indices: str, fixed: bool
) -> None:
    made = made_of(form, axis, indices, fixed)
    prepared = preset.prepare(made, fallback="full")
    for seed in (0, 1):
        x = np.random.default_rng(seed).normal(0, 2, (CHANNELS,) * FORMS[form][1]).astype(np.float32)
        (got,), (expected,) = prepared.run([x]), unoptimized(made, x)
        assert got.shape == expected.shape
        step = 0.11 if "channel" in form else 0.0  # of two numbers half way one may be rounded otherwise
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=step + 1e-4 * np.abs(expected).max())


def test_one_scale_is_moved_as_ever(openvino: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[4, 4] x) => (float[4] y) {{ {ACTIVATIONS} y = Gather (d, number) }}'
    )
    made.graph.initializer.extend(numpy_helper.from_array(CONSTANTS[n], n) for n in ("xs", "xz", "number"))
    assert "choices_apart" not in {change.pass_name for change in openvino.prepare(made).adaptations}
