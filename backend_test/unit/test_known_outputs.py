# SPDX-License-Identifier: Apache-2.0
"""Outputs that are known before anything runs, beside a model that the OpenVINO provider takes as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

import onnx_multi_backend as omb

X = np.float32([-1, 2, 3])


def model(body: str, *, outputs: str = "float[2] z", size: str = "3") -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{size}] x) => (float[{size}] y, {outputs})
            <float[2] w = {{3, 5}}> {{ y = Relu(x) {body} }}"""
    )


@pytest.mark.parametrize("size", ["3", "N"])
@pytest.mark.parametrize(
    ("body", "outputs", "wanted"),
    [
        pytest.param("z = Constant<value = float[2] {3, 5}>()", "float[2] z", [[3, 5]], id="constant"),
        pytest.param("z = Neg(w)", "float[2] z", [[-3, -5]], id="computed"),
        pytest.param("z = Neg(w) t = Constant<value = bool {1}>()", "float[2] z, bool t", [[-3, -5], True], id="two"),
        pytest.param("z = Neg(w) s = ReduceSum(z) v = Add(y, s)", "float[2] z, float[M] v", [[-3, -5], [-8, -6, -5]], id="read too"),
    ],
)  # fmt: skip
def test_it_is_there_in_every_run(
    body: str, outputs: str, wanted: list[object], size: str, built_in_ep: type[omb.Preset]
) -> None:
    with pytest.warns(omb.FallbackWarning):
        rep = built_in_ep.prepare(model(body, outputs=outputs, size=size))
    for _ in range(2):
        y, *others = rep.run([X])
        assert y.tolist() == [0, 2, 3] and [other.tolist() for other in others] == wanted


def test_the_shape_of_a_fixed_size_is_known(built_in_ep: type[omb.Preset]) -> None:
    with pytest.warns(omb.FallbackWarning, match="2 of 5 nodes run on CPUExecutionProvider.*If"):
        rep = built_in_ep.prepare(model("z = Shape(x)", outputs="int64[1] z"))
    assert [output.tolist() for output in rep.run([X])] == [[0, 2, 3], [3]]
    assert any(change.pass_name == "known_outputs" for change in rep.adaptations)
    assert "OpenVINOExecutionProvider" in {node.provider for node in rep.placement()}


def test_without_the_cpu_provider_it_is_refused(built_in_ep: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="z node not found in graph cache"):
        built_in_ep.prepare(model("z = Neg(w)"), fallback="none")


def test_a_node_that_the_provider_takes_may_read_it(built_in_ep: type[omb.Preset]) -> None:
    """A sum of constants is kept apart from what reads it, and is an output."""
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[A] axes) => (int64[1] s, int64[B] y)
           <int64[3] w = {18, -20, 12}, int64[1] zero = {0}, int64[1] start = {-1}, int64[1] end = {1}> {
             s = ReduceSum(w, zero) y = Slice(s, start, end, axes) }"""
    )
    with pytest.warns(omb.FallbackWarning):
        rep = built_in_ep.prepare(made)
    assert [output.tolist() for output in rep.run([np.array([0])])] == [[10], [10]]
