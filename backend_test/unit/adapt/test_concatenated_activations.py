# SPDX-License-Identifier: Apache-2.0
"""Quantized models of unknown sizes with int8 activations that are concatenated, as U-Nets are."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import onnx_multi_backend as omb

GENERATOR = np.random.default_rng(0)
CONSTANTS = {
    "s1": np.float32(0.02),
    "s2": np.float32(0.03),
    "s3": np.float32(0.035),
    "z": np.int8(0),
    "z3": np.int8(-20),
    "ws": GENERATOR.uniform(0.005, 0.02, 4).astype(np.float32),
    "wz": np.zeros(4, np.int8),
    "w": GENERATOR.integers(-100, 100, (4, 5, 3, 3)).astype(np.int8),
}

JOINED = """
    aq = QuantizeLinear(x, s1, z) a = DequantizeLinear(aq, s1, z)
    bq = QuantizeLinear(y, s2, z) b = DequantizeLinear(bq, s2, z)
    c = Concat<axis = 1>(a, b)
"""
AGAIN = "dq = QuantizeLinear(c, s3, z3) d = DequantizeLinear(dq, s3, z3)"
CONV = "v = DequantizeLinear<axis = 0>(w, ws, wz) o = Conv<pads = [1, 1, 1, 1]>"

FORMS = {
    "quantized before and after": f"{JOINED} {AGAIN} {CONV}(d, v)",
    "quantized before": f"{JOINED} {CONV}(c, v)",
    "quantized after": f"c = Concat<axis = 1>(x, y) {AGAIN} {CONV}(d, v)",
    "a pooling between": f"{JOINED} {AGAIN} m = MaxPool<kernel_shape = [2, 2]>(d) {CONV}(m, v)",
    "an activation between": f"{JOINED} r = Relu(c) dq = QuantizeLinear(r, s3, z3) d = DequantizeLinear(dq, s3, z3) {CONV}(d, v)",
}


def quantized(nodes: str) -> ModelProto:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>'
        f"g (float[n, 2, h, 6] x, float[n, 3, h, 6] y) => (float[n, 4, p, q] o) {{ {nodes} }}"
    )
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(a), name) for name, a in CONSTANTS.items() if name in read
    )
    return made


@pytest.mark.parametrize("form", FORMS)
def test_concatenated_int8_activations(preset: type[omb.Preset], form: str) -> None:
    model = quantized(FORMS[form])
    right = omb.OrtCpuBackend.prepare(model, session_options={"graph_optimization_level": "ORT_DISABLE_ALL"})
    prepared = preset.prepare(model)
    for size in (6, 8, 6):
        feeds = {n: GENERATOR.normal(size=(1, c, size, 6)).astype(np.float32) for n, c in (("x", 2), ("y", 3))}
        made, expected = prepared.run(feeds)[0], right.run(feeds)[0]
        assert np.linalg.norm(made - expected) < 0.03 * np.linalg.norm(expected)
    told = {change.pass_name for change in prepared.adaptations}
    assert ("low_precision" in told) == (preset.name != "OrtCpu")
