# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with constants behind the last states of recurrent layers: OpenVINO gave them another shape, or ended the process."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit.conftest import without_the_plugin

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
BEHIND = {
    "Mul": "s = Mul (h, two)",
    "Neg": "s = Neg (h)",
    "Add": "v = Mul (h, two) s = Add (v, two)",
    "in a branch": """s = If (b) <then_branch = t () => (float[d, n, m] p) { p = Mul (h, two) },
                                  else_branch = e () => (float[d, n, m] q) { q = Add (h, two) }>""",
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("batch", [1, 2, "n"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("layer", GATES)
def test_states_keep_their_shape(preset: type[omb.Preset], layer: str, behind: str, batch: int | str) -> None:
    if behind == "in a branch":
        without_the_plugin(preset)
    gates = GATES[layer] * 5
    cell, scaled = (", c", ", float[d, n, m] u") if layer == "LSTM" else ("", "")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g (float[3, {batch}, 2] x, float[1, {gates}, 2] w, float[1, {gates}, 5] r, bool b)
        => (float[d, n, m] s{scaled}) <float two = {{2}}> {{
            y, h{cell} = {layer} <hidden_size = 5> (x, w, r) {behind_of(layer, behind)} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    random = np.random.default_rng(0)
    for size in (1, 2, 1) if batch == "n" else (batch, batch):
        given = [random.normal(size=shape).astype(np.float32) for shape in ((3, size, 2), (1, gates, 2), (1, gates, 5))]
        feeds = dict(zip("xwr", given, strict=True)) | {"b": np.array(True)}
        for found, right in zip(prepared.run(feeds), ReferenceEvaluator(model).run(None, feeds), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def behind_of(layer: str, behind: str) -> str:
    return BEHIND[behind] + (" u = Mul (c, two)" if layer == "LSTM" else "")


def test_nothing_is_put_behind_states_that_nobody_reads(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 14]> g (float[3, 1, 2] x, float[1, 15, 2] w, float[1, 15, 5] r)
        => (float[d, n, m] h, float[a, d, n, m] z) { y, h = GRU <hidden_size = 5> (x, w, r) z = Neg (y) }"""
    )
    assert not openvino.prepare(model).adaptations
