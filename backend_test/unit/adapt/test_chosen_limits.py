# SPDX-License-Identifier: Apache-2.0
"""A limit beyond int32 that a run chooses, or another number: the end of a slice, or what a minimum is held to."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

NODES = {
    "an end": "w = Where (c, largest, two) b = Slice (a, zero, w) y = Sin (b)",
    "a start": "w = Where (c, smallest, one) s = Shape (a) b = Slice (a, w, s) y = Sin (b)",
    "a limit": "s = Shape (a) w = Where (c, largest, two) m = Min (w, s) b = Slice (a, zero, m) y = Sin (b)",
    "compared": "s = Shape (a) w = Where (c, largest, s) l = Less (w, ten) f = Cast <to = 1> (l) b = Add (a, f) y = Sin (b)",
}


@pytest.mark.parametrize("form", NODES)
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_it_comes_out_whole(preset: type[omb.Preset], form: str, chosen: bool) -> None:
    """OrtOpenvino had the CPU provider choose, and took what it gave for -1."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 16]> g (float[n] a, bool[1] c) => (float[k] y)
        <int64[1] largest = {{9223372036854775807}}, int64[1] smallest = {{-9223372036854775808}}, int64[1] zero = {{0}}, int64[1] one = {{1}},
        int64[1] two = {{2}}, int64[1] ten = {{10}}> {{ {NODES[form]} }}"""
    )
    a = np.float32([1, 2, 3, 4])
    right = {
        "an end": a if chosen else a[:2],
        "a start": a if chosen else a[1:],
        "a limit": a if chosen else a[:2],
        "compared": a if chosen else a + 1,
    }[form]
    np.testing.assert_allclose(preset.prepare(model).run([a, np.array([chosen])])[0], np.sin(right), rtol=1e-5)
