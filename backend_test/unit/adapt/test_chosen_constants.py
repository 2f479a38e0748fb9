# SPDX-License-Identifier: Apache-2.0
"""Results beyond int32 of constants that a run chooses from, on engines that compute int64 in int32."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

CHOICES = {
    "by a bool": ("bool[n] x", "w = Where (x, large, four)", [True, False]),
    "by a comparison of floats": ("float[n] x", "e = Less (x, half) w = Where (e, large, four)", np.float32([0, 1])),
    "by an index": ("int64[n] x", "w = Gather (both, x)", [1, 0]),
    "by a count": ("bool[n] x", "c = Cast <to = 7> (x) w = Mul (c, large)", [True, False]),
    "by a position": ("float[n] x", "i = ArgMax <keepdims = 1> (x) w = Gather (both, i)", np.float32([0, 1])),
}


def model(choice: str, behind: str) -> onnx.ModelProto:
    given, nodes, _ = CHOICES[choice]
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g ({given}) => (int64[m] y)
        <int64 large = {{2000000000}}, int64 four = {{4}}, int64[2] both = {{4, 2000000000}}, float half = {{0.5}}> {{
        {nodes} y = {behind} }}"""
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_what_leaves_int32_is_refused(openvino: type[omb.Preset], choice: str) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="leaves what int32 holds"):
        openvino.prepare(model(choice, "Add (w, w)"))


@pytest.mark.parametrize("choice", CHOICES)
def test_what_stays_within_is_computed(openvino: type[omb.Preset], ort_cpu: type[omb.Preset], choice: str) -> None:
    kept = model(choice, "Sub (w, four)")
    x = np.array(CHOICES[choice][2])
    np.testing.assert_array_equal(openvino.prepare(kept).run([x])[0], ort_cpu.prepare(kept).run([x])[0], strict=True)
