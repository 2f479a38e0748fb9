# SPDX-License-Identifier: Apache-2.0
"""Models that OpenVINO refuses while sizes of their inputs are open: a squeezed axis decides how many axes there are, as PyTorch exports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

SQUEEZED = """<ir_version: 8, opset_import: ["": 16]> g (float[n, 2, t] x) => (float[a, b, c] y)
    <int64 last = {2}, int64 one = {1}, int64[1] axis = {2}, float[1, 2, 1] w = {1, 2}> {
    s = Shape (x) size = Gather (s, last) single = Equal (size, one)
    q = If (single) <then_branch = t1 () => (float[n, 2] u) { u = Squeeze (x, axis) }, else_branch = e1 () => (float[n, 2, t] v) { v = Identity (x) }>
    y = Conv (q, w) }"""

#: As Silero VAD is exported: a model for each sample rate, of which one alone takes inputs of a run's size.
RATES = """<ir_version: 8, opset_import: ["": 16]> g (float[n, 2, t] x, int64 rate) => (float[a, b, c] y)
    <int64 wide = {16000}, int64 last = {2}, int64 two = {2}, int64[1] axis = {2}, float[1, 2, 3] w = {1, 0, 0, 0, 0, 2}, float[1, 2, 1] v = {3, 4}> {
    is_wide = Equal (rate, wide)
    y = If (is_wide) <
        then_branch = t1 () => (float[a, b, c] y1) { y1 = Conv (x, w) },
        else_branch = e1 () => (float[a, b, c] y2) {
            s = Shape (x) size = Gather (s, last) pair = Equal (size, two)
            q = If (pair) <then_branch = t2 () => (float[n, 2, t] p) { p = Identity (x) }, else_branch = e2 () => (float[n] r) { r = ReduceMax <keepdims = 0, axes = [1, 2]> (x) }>
            y2 = Conv (q, v) }> }"""


def _squeezed() -> ModelProto:
    return onnx.parser.parse_model(SQUEEZED)


def _x(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _weighted(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x[:, :1] + 2 * x[:, 1:]


def test_the_refusal_says_what_helps(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.OpenShapesError, match=r"input_example=inputs.*input_shapes=\{name: shape\}") as refused:
        openvino.prepare(_squeezed())
    assert refused.value.operators
    assert "Choose a" not in str(refused.value)
    assert not openvino.is_compatible(_squeezed())
    assert openvino.is_compatible(_squeezed(), input_example=_x(1, 2, 4))


def test_it_is_compiled_for_the_shapes_of_each_run(openvino: type[omb.Preset], tmp_path: Path) -> None:
    with pytest.warns(omb.CacheWarning, match="for the shapes of each run, and keeps nothing"):
        prepared = openvino.prepare(_squeezed(), input_example=_x(1, 2, 4), cache_dir=tmp_path)
    assert [a.pass_name for a in prepared.adaptations].count("input_shapes") == 1
    for shape in ((1, 2, 4), (3, 2, 5), (1, 2, 4), (2, 2, 2)):
        np.testing.assert_array_equal(prepared.run(_x(*shape))[0], _weighted(_x(*shape)))
    batches = [_x(2, 2, size) for size in (3, 4, 5)]
    for result, batch in zip(prepared.run_many(batches), batches, strict=True):
        np.testing.assert_array_equal(result[0], _weighted(batch))


def test_in_a_process_of_its_own(openvino: type[omb.Preset]) -> None:
    with openvino.prepare(_squeezed(), input_example=_x(1, 2, 4), isolate=True) as prepared:
        np.testing.assert_array_equal(prepared.run(_x(3, 2, 5))[0], _weighted(_x(3, 2, 5)))


def test_run_model_knows_the_shapes(preset: type[omb.Preset]) -> None:
    if preset.name.startswith("OrtOpenvino"):
        pytest.skip("the provider refuses it")
    np.testing.assert_array_equal(preset.run_model(_squeezed(), _x(2, 2, 3))[0], _weighted(_x(2, 2, 3)))


def test_what_is_refused_for_these_shapes_too_stays_refused(openvino: type[omb.Preset]) -> None:
    """Of a single column the axis is gone, and Conv has none to move along: so says ONNX Runtime."""
    prepared = openvino.prepare(_squeezed(), input_example=_x(1, 2, 4))
    with pytest.raises(omb.RunError, match="on inputs of these shapes"):
        prepared.run(_x(1, 2, 1))
    np.testing.assert_array_equal(prepared.run(_x(1, 2, 3))[0], _weighted(_x(1, 2, 3)))


def test_a_single_integer_may_decide_too(openvino: type[omb.Preset]) -> None:
    wide, narrow = {"x": _x(1, 2, 5), "rate": np.int64(16000)}, {"x": _x(1, 2, 2), "rate": np.int64(8000)}
    prepared = openvino.prepare(onnx.parser.parse_model(RATES), input_example=wide)
    assert "known_branches" in [a.pass_name for a in prepared.adaptations]
    for _ in range(2):
        np.testing.assert_array_equal(prepared.run(wide)[0], [[[0 + 2 * 7, 1 + 2 * 8, 2 + 2 * 9]]])
        np.testing.assert_array_equal(prepared.run(narrow)[0], [[[0 * 3 + 2 * 4, 1 * 3 + 3 * 4]]])


def test_a_bound_run_is_for_one_value(openvino: type[omb.Preset]) -> None:
    wide = {"x": _x(1, 2, 5), "rate": np.array(16000)}
    bound = openvino.prepare(onnx.parser.parse_model(RATES), input_example=wide).bind(wide)
    np.testing.assert_array_equal(bound.run()[0], [[[14, 17, 20]]])
    bound.inputs["rate"][...] = 8000
    with pytest.raises(omb.RunError, match=r"'rate' decides.*bound for 16000, and it is 8000 now.*again"):
        bound.run()


def test_what_decides_nothing_is_not_taken_for_known(
    openvino: type[omb.Preset], caplog: pytest.LogCaptureFixture
) -> None:
    text = RATES.replace("int64 rate)", "int64 rate, int64[1] token)").replace(
        "y = If", "beside = Add (token, token) y = If"
    )
    model = onnx.parser.parse_model(
        text.replace("=> (float[a, b, c] y)\n", "=> (float[a, b, c] y, int64[1] beside)\n", 1)
    )
    given = {"x": _x(1, 2, 5), "rate": np.int64(16000), "token": np.array([1000])}
    prepared = openvino.prepare(model, input_example=given)
    caplog.clear()
    with caplog.at_level("INFO", logger="onnx_multi_backend"):
        for token in range(3):
            assert prepared.run({**given, "token": np.array([token])})[1] == 2 * token
    assert not [record for record in caplog.records if "compiled" in record.message]


def test_an_input_with_a_default_is_refused_before_the_first_run(openvino: type[omb.Preset]) -> None:
    text = RATES.replace("int64 wide", "int64 rate = {16000}, int64 wide")
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(onnx.parser.parse_model(text), input_example={"x": _x(1, 2, 5), "rate": np.int64(8000)})
