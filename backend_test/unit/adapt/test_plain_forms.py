# SPDX-License-Identifier: Apache-2.0
"""What hides a form from the rules: integers that an Identity passes on, and results that nothing reads. And branches that make other ranks."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def _parsed(text: str, opset: int = 17) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


#: By the integers that an Identity passes on; the sizes of x, and the shape of y.
EXPANDED = {
    "to nothing": (
        "(float[n] x) => (float[a, b] y) <int64[1] c = {0}, int64[2] d = {2, 0}> { s = Identity (c) t = Expand (x, s) y = Expand (t, d) }",
        (1,),
        (2, 0),
    ),
    "by no axes": (
        "(float[n] x) => (float y) <int64[0] c = {}> { t = ReduceL1 <keepdims = 0> (x) s = Identity (c) y = Expand (t, s) }",
        (3,),
        (),
    ),
    "in a branch": (
        """(float[n] x) => (float[a] y) <int64[1] c = {0}, int64[1] zero = {0}> { i = Shape (x) b = Greater (i, zero) y = If (b) <
        then_branch = t () => (float[e] p) { s = Identity (c) u = Expand (x, s) p = Neg (u) }, else_branch = f () => (float[h] q) { q = Neg (x) }> }""",
        (1,),
        (0,),
    ),
}


@pytest.mark.parametrize("form", EXPANDED)
def test_integers_that_an_identity_passes_on(preset: type[omb.Preset], form: str) -> None:
    text, sizes, shape = EXPANDED[form]
    found = preset.prepare(_parsed(text), fallback="full").run([np.ones(sizes, np.float32)])[0]
    assert found.shape == shape


def test_an_identity_that_is_a_result_stays(openvino: type[omb.Preset]) -> None:
    model = _parsed(
        "(float[n] x) => (float[a] y, int64[1] s) <int64[1] c = {1}> { s = Identity (c) t = Abs (x) y = Expand (t, s) }"
    )
    y, s = openvino.prepare(model).run([np.ones(3, np.float32)])
    assert (y.shape, s.tolist()) == ((3,), [1])


#: Unique in the order of the first occurrences, and what is asked for.
UNIQUES = {
    "counts": (
        "(int64[4] x) => (int64[q] a, int64[w] b, int64[e] n) { a, b, k, n = Unique <sorted = 0> (x) }",
        [[0, -1], [0, 2], [3, 1]],
    ),
    "values": ("(int64[4] x) => (int64[q] a) { a, b, k, n = Unique <sorted = 0> (x) }", [[0, -1]]),
    "places alone": ("(int64[4] x) => (int64[r] k) { a, b, k, n = Unique (x) }", [[1, 1, 0, 1]]),
    "counts alone": ("(int64[4] x) => (int64[r] n) { a, b, k, n = Unique (x) }", [[1, 3]]),
    "places that are read": (
        "(int64[4] x) => (int64[q] a, int64[r] m) { a, b, k, n = Unique <sorted = 0> (x) m = Neg (k) }",
        [[0, -1], [0, 0, -1, 0]],
    ),
}


@pytest.mark.parametrize("form", UNIQUES)
def test_results_of_unique_that_nothing_reads(preset: type[omb.Preset], form: str) -> None:
    text, expected = UNIQUES[form]
    model = _parsed(
        text.replace("{", "{ v = Abs (z)", 1)
        .replace(") =>", ", float[n] z) =>", 1)
        .replace(") {", ", float[n] v) {", 1)
    )
    *found, _ = preset.prepare(model, fallback="full").run([np.array([0, 0, -1, 0]), np.ones(2, np.float32)])
    assert [value.tolist() for value in found] == expected


def test_branches_of_a_scalar_and_of_a_list(engine: type[omb.Preset]) -> None:
    """OpenVINO gave the scalar an axis."""
    model = _parsed(
        """(bool c, float z, float[2] v) => (float[n] y) { y = If (c) <then_branch = t () => (float a) { a = Neg (z) },
        else_branch = e () => (float[2] b) { b = Neg (v) }> }"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if engine is omb.OpenvinoBackend:
        with pytest.raises(omb.UnsupportedModelError, match="a scalar that one branch makes"):
            engine.prepare(model)
        return
    prepared = engine.prepare(model)
    for chosen, shape in ((True, ()), (False, (2,))):
        assert prepared.run([np.array(chosen), np.float32(1), np.ones(2, np.float32)])[0].shape == shape


@pytest.mark.parametrize("clip", ["Clip (t)", "Clip (t, low)"])
def test_a_clip_behind_a_resize_that_crops(preset: type[omb.Preset], clip: str) -> None:
    """OpenVINO's frontend ended the process."""
    model = _parsed(
        f"""(float[1, 2, 4, 4] x) => (float[a, b, c, d] y) <float[8] roi = {{0, 0, 0.1, 0.1, 1, 1, 0.8, 0.8}}, float[4] s = {{1, 1, 1.5, 2}}, float low = {{0}}> {{
        t = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 1.5> (x, roi, s) y = {clip} }}""",
        15,
    )
    try:
        prepared = preset.prepare(model, fallback="full")
    except omb.UnsupportedModelError:
        assert preset is omb.OpenvinoBackend
        return
    assert prepared.run([np.ones((1, 2, 4, 4), np.float32)])[0].shape == (1, 2, 6, 8)
