# SPDX-License-Identifier: Apache-2.0
"""Limits of a Clip that are attributes and left to their defaults."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

_LIMIT = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("opset", [6, 7, 10])
@pytest.mark.parametrize(
    ("attributes", "low", "high"),
    [("", -_LIMIT, _LIMIT), ("<min = -1.0>", -1.0, _LIMIT), ("<max = 1.0>", -_LIMIT, 1.0)],
)
@pytest.mark.parametrize("place", ["graph", "branch"])
def test_an_infinity_is_limited(
    preset: type[omb.Preset], opset: int, attributes: str, low: float, high: float, place: str
) -> None:
    clip = f"y = Clip {attributes} (x)"
    other = "z = Neg (x)"
    if place == "branch":
        clip = f"y = If (on) <then_branch = a () => (float[4] y) {{ {clip} }}, else_branch = b () => (float[4] z) {{ {other} }}>"
    model = onnx.parser.parse_model(
        f'<ir_version: 4, opset_import: ["": {opset}]> g (float[4] x, bool on) => (float[4] y) {{ {clip} }}'
    )
    x = np.array([np.inf, -np.inf, 2.0, -2.0], np.float32)
    np.testing.assert_array_equal(preset.prepare(model).run([x, np.array(True)])[0], np.clip(x, low, high))


def test_both_limits_stay_as_they_are(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 4, opset_import: ["": 7]> g (float[n] x) => (float[n] y) { y = Clip <min = 0.0, max = 6.0> (x) }'
    )
    assert not openvino.prepare(model).adaptations
