# SPDX-License-Identifier: Apache-2.0
"""A constant that an If inside an If reads, of which ONNX Runtime's OpenVINO provider (1.24.1) ends the process with Casts around."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import onnx_multi_backend as omb
from backend_test.unit.conftest import without_the_plugin
from onnx_multi_backend.engines.ort import engine, plugins, providers
from onnx_multi_backend.engines.ort.optimizers import harmful

GRAPH = """<ir_version: 10, opset_import: ["": 16]>
g (float[3] v, int64[1] size, bool x) => (float[3] e, float[5,3,3,3] c, float[5,3,3,3] y, float[3] w) {
    e = Expand(v, size)
    c = Identity(k)
    y = If(x) <else_branch = outer_else () => (float[5,3,3,3] p) <int64 last = {-1}> {
            s = SequenceConstruct(size, size)
            f = SequenceErase(s, last)
            p = Identity(c)
        }, then_branch = outer_then () => (float[5,3,3,3] q) {
            i = If(true) <else_branch = inner_else () => (float[5,3,3,3] r) { a = ReduceLogSum(e) r = Identity(c) },
                then_branch = inner_then () => (float[5,3,3,3] t) { n = Identity(x) z = Sigmoid(m) t = Identity(c) }>
            l = Max(c, b)
            q = Identity(i)
        }>
    w = Scan(v) <num_scan_inputs = 1, scan_output_directions = [1], body = step (float u) => (float d) {
            o = Optional(y)
            h = OptionalHasElement(o)
            d = Identity(u)
        }>
}"""


def model() -> ModelProto:
    rng = np.random.default_rng(7)
    made = parser.parse_model(GRAPH)
    constants = {
        name: rng.normal(size=size).astype(np.float32) for name, size in (("k", (5, 3, 3, 3)), ("m", (3, 1, 3)))
    }
    constants["true"] = np.array(True)
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    inner = made.graph.node[2].attribute[1].g
    assert inner.name == "outer_then"
    inner.initializer.append(numpy_helper.from_array(rng.normal(size=(5, 3, 1, 3)).astype(np.float32), "b"))
    return made


def test_it_is_refused_and_not_written_in_another_way(
    openvino_ep: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ONNX Runtime computes constants in its branches beforehand, as it did unless it was told not to."""
    if not plugins.built_in(providers.OPENVINO):
        pytest.skip("the OpenVINO execution provider comes from the plugin here")
    monkeypatch.setattr(engine, "of_branches", lambda contents: [])
    others = [look for look in harmful.LOOKING if look is not harmful.of_branches]
    monkeypatch.setattr(harmful, "LOOKING", others)
    with pytest.raises(omb.UnsupportedModelError, match="fails at a constant that a subgraph reads"):
        openvino_ep.prepare(model())


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_it_runs_otherwise(preset: type[omb.Preset]) -> None:
    if preset.name not in ("OrtCpu", "OrtOpenvino"):
        pytest.skip("OpenVINO has no sequences in branches")
    without_the_plugin(preset)
    x = np.float32([1, 2, 3])
    e, c, y, w = preset.prepare(model()).run([x, np.array([3]), np.array(True)])
    np.testing.assert_array_equal(c, y)
    np.testing.assert_array_equal([e, w], [x, x[::-1]])
