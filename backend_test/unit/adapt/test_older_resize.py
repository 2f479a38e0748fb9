# SPDX-License-Identifier: Apache-2.0
"""Upsample, and Resize of opset 10, give the same numbers where another node of the model has it lifted to a newer opset."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import computed, rewritten

FORMS = {
    "nearest": (10, "y = Resize <mode = 'nearest'> (x, s)", (1, 1, 2.5, 3)),
    "nearest, smaller": (10, "y = Resize <mode = 'nearest'> (x, s)", (1, 1, 0.6, 0.5)),
    "nearest, both": (10, "y = Resize <mode = 'nearest'> (x, s)", (1, 1, 0.6, 1.7)),
    "linear": (10, "y = Resize <mode = 'linear'> (x, s)", (1, 1, 2.5, 3)),
    "linear, smaller": (10, "y = Resize <mode = 'linear'> (x, s)", (1, 1, 0.6, 1.5)),
    "Upsample": (9, "y = Upsample <mode = 'nearest'> (x, s)", (1, 1, 2.5, 3)),
    "linear Upsample": (9, "y = Upsample <mode = 'linear'> (x, s)", (1, 1, 2, 3)),
    "Upsample of opset 7": (7, "y = Upsample <mode = 'linear', scales = [1.0, 1.0, 2.0, 1.5]> (x)", ()),
}


def model(form: str, known: bool) -> ModelProto:
    opset, node, scales = FORMS[form]
    given = "" if known or not scales else ", float[4] s"
    beside = f"<float[4] s = {{{', '.join(map(str, scales))}}}>" if known and scales else ""
    text = f"(float[n, 2, h, w] x{given}) => (float[a, b, c, d] y, float[n, 2, h, w] z) {beside} {{ {node} z = Selu <gamma = 0.0> (x) }}"
    return onnx.parser.parse_model(f'<ir_version: 5, opset_import: ["": {opset}]> g {text}'.replace("'", '"'))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known", [True, False])
def test_a_lifted_model(openvino: type[omb.Preset], form: str, known: bool) -> None:
    ort = pytest.importorskip("onnxruntime")
    made = model(form, known)
    prepared = openvino.prepare(made)
    assert any(a.pass_name == "opset_version" for a in prepared.adaptations)
    right = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for sizes in ((1, 2, 5, 4), (2, 2, 6, 7)):
        feeds = {"x": np.random.default_rng(1).normal(size=sizes).astype(np.float32)}
        feeds |= {} if known or not FORMS[form][2] else {"s": np.float32(FORMS[form][2])}
        np.testing.assert_allclose(prepared.run(feeds)[0], right.run(["y"], feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_on_onnx_runtime(form: str) -> None:
    made = model(form, True)
    x = np.random.default_rng(1).normal(size=(1, 2, 5, 4)).astype(np.float32)
    right = computed(made, x)
    changed, _ = rewritten(made, "Upsample", "Selu", forms=lambda site: site.opset < 11)
    np.testing.assert_allclose(computed(changed, x)[0], right[0], rtol=1e-5, atol=1e-6)
