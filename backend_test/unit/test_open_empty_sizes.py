# SPDX-License-Identifier: Apache-2.0
"""Tensors that are known to have no elements, some of whose sizes only a run tells: OpenVINO gave 0 for these once an axis came or went."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

#: What makes y of v, and the shape of y where v has the shape (5, 0, 3).
FORMS = {
    "Unsqueeze": ("y = Unsqueeze (v, first)", (1, 5, 0, 3)),
    "Unsqueeze inside": ("y = Unsqueeze (v, last_but_one)", (5, 0, 1, 3)),
    "Unsqueeze twice": ("y = Unsqueeze (v, both)", (1, 5, 0, 3, 1)),
    "Squeeze": ("u = Unsqueeze (v, first) w = Neg (u) y = Squeeze (w, first)", (5, 0, 3)),
    "ArgMax": ("i = ArgMax <axis = 2, keepdims = 0> (v) y = Cast <to = 1> (i)", (5, 0)),
    "Scan": (
        "y = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = b (float[p, q] a) => (float[p, q] r) { r = Neg (a) }> (v)",
        (3, 5, 0),
    ),
    "ConcatFromSequence": (
        "s = SequenceConstruct (v, v) y = ConcatFromSequence <axis = 1, new_axis = 1> (s)",
        (5, 2, 0, 3),
    ),
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("sizes", ["a, 0, 3", "a, b, 3"])
@pytest.mark.parametrize("form", FORMS)
def test_sizes_are_kept(preset: type[omb.Preset], form: str, sizes: str) -> None:
    nodes, shape = FORMS[form]
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[{sizes}] x) => (float y)
        <int64[1] first = {{0}}, int64[1] last_but_one = {{-2}}, int64[2] both = {{0, -1}}> {{ v = Neg (x) {nodes} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    prepared = preset.prepare(model, fallback="full")
    for size in (5, 2, 5):
        (y,) = prepared.run([np.zeros((size, 0, 3), np.float32)])
        assert y.shape == tuple(size if axis == 5 else axis for axis in shape)


@pytest.mark.parametrize("opset", [9, 11])
def test_axes_of_a_squeeze_in_any_order(preset: type[omb.Preset], opset: int) -> None:
    """Before opset 11 onnx's inference leaves some out, and a result without elements is made by what is inferred."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[2] x) => (float[a, b] y, float[2] z) {{
            c = Constant <value = float[1, 0, 1, 2] {{}}> () y = Squeeze <axes = [2, 0]> (c) z = Neg (x) }}"""
    )
    y, _ = preset.prepare(model, fallback="full").run([np.zeros(2, np.float32)])
    assert y.shape == (0, 2)
