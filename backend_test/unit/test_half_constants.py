# SPDX-License-Identifier: Apache-2.0
"""What is computed of float16 constants alone, on the built-in OpenVINO provider: computed ahead, in float32."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import onnx_multi_backend as omb

RNG = np.random.default_rng(5)


def model(text: str, opset: int, **constants: np.ndarray) -> ModelProto:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return made


HALVES = RNG.normal(size=(4, 4, 4, 4)).astype(np.float16)
CONSTANTS = RNG.integers(-2, 3, (2, 3, 3)).astype(np.float32)
SUM = np.abs(HALVES.astype(np.float32)).sum()
FORMS = [
    pytest.param(
        model("() => (float16 y) { y = ReduceL1<keepdims = 0>(c, a) }", 21, c=HALVES, a=np.array([2, 3, -4, -3])), [SUM], id="a reduction"
    ),
    pytest.param(
        model(
            "() => (float[2,9,9] t, float16 y) { t = Tile(c, r) k = Clip<max = 2.5, min = -1.5>(h) y = Acos(k) }",
            10, c=CONSTANTS, r=np.array([1, 3, 3]), h=np.array(0.25, np.float16),
        ),
        [np.tile(CONSTANTS, (1, 3, 3)), np.arccos(0.25)],
        id="two nodes",
    ),
    pytest.param(
        model(
            "(float[N] x) => (float[N] z, float16[4,4,4,4] y) { z = Relu(x) s = Sin(c) y = Mul(s, h) }",
            18, c=HALVES, h=np.array(2, np.float16),
        ),
        [np.float32([0, 3]), 2 * np.sin(HALVES.astype(np.float32))],
        id="beside others",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), FORMS)
def test_they_are_what_onnx_asks_for(made: ModelProto, wanted: list[np.ndarray], openvino_ep: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = openvino_ep.prepare(made)
    given = [np.float32([-2, 3])] if made.graph.input else []
    assert "half_constants" in {change.pass_name for change in rep.adaptations}
    for _ in range(2):
        for found, right in zip(rep.run(given), wanted, strict=True):
            np.testing.assert_allclose(found.astype(np.float32), right, rtol=5e-3, atol=5e-3)


def test_what_reads_an_input_too_is_left_alone(openvino_ep: type[omb.Preset]) -> None:
    made = model("(float16[4] x) => (float16[4] y) { m = Mul(x, h) y = Relu(m) }", 18, h=np.array(2, np.float16))
    rep = openvino_ep.prepare(made)
    assert "half_constants" not in {change.pass_name for change in rep.adaptations}


def test_where_nothing_is_computed_ahead_the_process_lives(openvino_ep: type[omb.Preset]) -> None:
    """With its constants in the branch of an If that is known, the provider (1.24.1) ends the process for the Casts."""
    made = model(
        """() => (float16[4,2] y, float16[4,2] z) {
            r = Reciprocal(h) y = Atanh(r)
            z = If(false) <then_branch = a () => (float16[4,2] p) { c = Cos(d) p = Identity(r) },
                else_branch = b () => (float16[4,2] q) { q = Identity(y) }>
        }""",
        21,
        h=np.array([[2, 3], [4, 5], [6, 7], [8, 9]], np.float16),
        false=np.array(False),
    )
    branch = next(a.g for a in made.graph.node[2].attribute if a.name == "then_branch")
    branch.initializer.append(numpy_helper.from_array(RNG.normal(size=(2, 2, 2, 2)), "d"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = openvino_ep.prepare(made, fallback="full")
    wanted = np.arctanh(1 / np.arange(2, 10, dtype=np.float32)).reshape(4, 2)
    for found in rep.run([]):
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=5e-3)
