# SPDX-License-Identifier: Apache-2.0
"""A Scan that reads nothing of what it is given of each step makes as many steps all the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb

#: What the body makes of a state, and what the Scan collects.
_FORMS = {
    "nothing collected": ("t = Mul (s, two)", "seen = Identity (row)", "y"),
    "states collected": ("t = Mul (s, two)", "seen = Identity (t)", "y, all"),
    "a size alone": (
        "size = Size (row)\n count = Cast <to = 1> (size)\n t = Add (s, count)",
        "seen = Neg (s)",
        "y, all",
    ),
    "one state through another": ("t = Mul (s, two)", "seen = Sub (row, s)", "y, z"),
    "another tensor of a sequence": (
        "q = SequenceConstruct (s, row)\n first = Constant <value = int64 {0}> ()\n a = SequenceAt (q, first)\n t = Mul (a, two)",
        "seen = Neg (t)",
        "y, all",
    ),
    "another tensor of a sequence, in a branch": (
        """high = ReduceMax <keepdims = 0> (s)
        under = Less (high, limit)
        t = If (under) <then_branch = a () => (float[2] p) {
            q = SequenceConstruct (s, row) first = Constant <value = int64 {0}> () u = SequenceAt (q, first) p = Mul (u, two) },
            else_branch = b () => (float[2] o) { o = Neg (s) }>""",
        "seen = Neg (t)",
        "y, all",
    ),
    "rows collected": ("t = Mul (s, two)", "seen = Add (row, s)", "y, all"),
}


def _model(form: str, rows: str, attributes: str, opset: int) -> onnx.ModelProto:
    step, seen, results = _FORMS[form]
    two = form == "one state through another"
    states = "float[2] s, float[2] other" if two else "float[2] s"
    inner = "float[2] t, float[2] passed, float[2] seen" if two else "float[2] t, float[2] seen"
    passed = "passed = Add (s, other)" if two else ""
    made = "y, z, all" if two else "y, all"
    outputs = ", ".join(f"float[{'2' if name != 'all' else 'a, b'}] {name}" for name in results.split(", "))
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]>
        steps (float[2] x, float[{rows}] rows) => ({outputs}) <float[2] two = {{2, 3}}, float limit = {{20}}> {{
           {made} = Scan <num_scan_inputs = 1{attributes}, body = step ({states}, float[2] row) => ({inner}) {{
              {step}
              {passed}
              {seen}
           }}> ({"x, x" if two else "x"}, rows)
        }}"""
    )


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(
    ("rows", "attributes"),
    [
        ((3, 2), ""),
        (("n", 2), ""),
        ((2, "n"), ", scan_input_axes = [1], scan_input_directions = [1]"),
        ((2, 4), ", scan_input_axes = [-1]"),
        ((1, 2), ", scan_output_axes = [1]"),
    ],
)
@pytest.mark.parametrize("opset", [9, 17])
def test_a_scan_makes_as_many_steps_as_it_is_given(
    preset: type[omb.Preset], form: str, rows: tuple[int | str, ...], attributes: str, opset: int
) -> None:
    if "sequence" in form and opset < 11:
        pytest.skip("sequences came with opset 11")
    if "Ort" in preset.name and "-" in attributes and opset < 11:
        pytest.skip("negative axes came with opset 11")
    model = _model(form, ", ".join(map(str, rows)), attributes, opset)
    prepared = preset.prepare(model, fallback="full") if preset.name == "OrtOpenvino" else preset.prepare(model)
    plain = omb.OrtCpuBackend.prepare(model)
    for length in (4, 2) if "n" in rows else (0,):
        shape = [length if size == "n" else int(size) for size in rows]
        feeds = [np.array([1.0, 3.0], np.float32), np.random.default_rng(length).standard_normal(shape).astype("f4")]
        for result, right in zip(prepared.run(feeds), plain.run(feeds), strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-6)
